//! Merkle trees as RFC 9162 has them (§2.1): SHA-256, with a prefix byte that distinguishes leaves
//! from nodes, so that no node can be taken for a message.
//!
//! The tree grows by appending. Only the roots of its perfect subtrees, the peaks, are kept: at
//! most 64 hashes.

use sha2::{Digest, Sha256};

pub const HASH_LEN: usize = 32;
pub type Hash = [u8; HASH_LEN];

const LEAF: u8 = 0;
const NODE: u8 = 1;

/// The hash of a leaf of consecutive parts.
#[must_use]
pub fn leaf(parts: &[&[u8]]) -> Hash {
    let mut hasher = Sha256::new_with_prefix([LEAF]);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// The hash of a node.
#[must_use]
pub fn node(left: &Hash, right: &Hash) -> Hash {
    let mut bytes = [NODE; 1 + 2 * HASH_LEN];
    bytes[1..=HASH_LEN].copy_from_slice(left);
    bytes[1 + HASH_LEN..].copy_from_slice(right);
    Sha256::digest(bytes).into()
}

/// A tree that grows.
#[derive(Clone, Default)]
pub struct Tree {
    count: u64,
    peaks: Vec<Hash>,
    proof: Option<Proof>,
}

/// The path from one leaf up.
#[derive(Clone)]
struct Proof {
    leaf: u64,
    /// Which peak is above the leaf, once that is appended.
    under: Option<usize>,
    path: Vec<Hash>,
}

impl Tree {
    /// A tree that proves the leaf of this number.
    #[must_use]
    pub fn proving(leaf: u64) -> Self {
        let proof = Some(Proof { leaf, under: None, path: Vec::new() });
        Self { proof, ..Self::default() }
    }

    /// A tree that continues one with this many leaves and these peaks; None if that is impossible.
    #[must_use]
    pub fn resumed(count: u64, peaks: Vec<Hash>) -> Option<Self> {
        let fits = peaks.len() == count.count_ones() as usize;
        fits.then_some(Self { count, peaks, proof: None })
    }

    /// How many leaves there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The roots of perfect subtrees, from the largest to the smallest.
    #[must_use]
    pub fn peaks(&self) -> &[Hash] {
        &self.peaks
    }

    /// Appends a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let (mut hash, merges) = (leaf, self.count.trailing_ones());
        let mut holds = self.proof.as_ref().is_some_and(|proof| proof.leaf == self.count);
        for _ in 0..merges {
            let Some(left) = self.peaks.pop() else { break };
            if let Some(proof) = &mut self.proof {
                if holds {
                    proof.path.push(left);
                } else if proof.under == Some(self.peaks.len()) {
                    proof.path.push(hash);
                    holds = true;
                }
            }
            hash = node(&left, &hash);
        }
        if let Some(proof) = self.proof.as_mut().filter(|_| holds) {
            proof.under = Some(self.peaks.len());
        }
        self.peaks.push(hash);
        self.count += 1;
    }

    /// The root. Without leaves it is the hash of nothing.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else { return Sha256::digest([]).into() };
        peaks.fold(*last, |right, left| node(left, &right))
    }

    /// The siblings on the path from the leaf up to the root; None if the leaf is not appended yet.
    #[must_use]
    pub fn path(&self) -> Option<Vec<Hash>> {
        let proof = self.proof.as_ref()?;
        let under = proof.under?;
        let mut path = proof.path.clone();
        if let Some((last, others)) = self.peaks.get(under + 1..)?.split_last() {
            path.push(others.iter().rev().fold(*last, |right, left| node(left, &right)));
        }
        path.extend(self.peaks[..under].iter().rev());
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inputs and roots of the test vectors of Certificate Transparency (RFC 6962, whose trees
    /// RFC 9162 keeps).
    const INPUTS: [&str; 8] = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ];
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect()
    }

    fn leaves() -> impl Iterator<Item = Hash> {
        INPUTS.iter().map(|input| leaf(&[&bytes(input)]))
    }

    #[test]
    fn roots_are_those_of_the_known_vectors() {
        let mut tree = Tree::default();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(tree.root().to_vec(), bytes(empty));
        for (leaf, root) in leaves().zip(ROOTS) {
            tree.push(leaf);
            assert_eq!(tree.root().to_vec(), bytes(root));
            let again = Tree::resumed(tree.count(), tree.peaks().to_vec()).unwrap();
            assert_eq!(again.root(), tree.root());
        }
        assert!(Tree::resumed(7, tree.peaks().to_vec()).is_none());
    }

    /// RFC 9162 §2.1.3.2, verification of an inclusion proof.
    fn root_by(path: &[Hash], leaf: Hash, number: u64, count: u64) -> Option<Hash> {
        let (mut at, mut last, mut root) = (number, count - 1, leaf);
        for sibling in path {
            if last == 0 {
                return None;
            }
            if at & 1 == 1 || at == last {
                root = node(sibling, &root);
                while at & 1 == 0 && at != 0 {
                    (at, last) = (at >> 1, last >> 1);
                }
            } else {
                root = node(&root, sibling);
            }
            (at, last) = (at >> 1, last >> 1);
        }
        (last == 0).then_some(root)
    }

    #[test]
    fn each_leaf_of_each_tree_is_proven() {
        for count in 1..=70_u64 {
            let leaves: Vec<_> = (0..count).map(|it| leaf(&[&it.to_le_bytes()])).collect();
            for number in 0..count {
                let mut tree = Tree::proving(number);
                for leaf in &leaves {
                    tree.push(*leaf);
                }
                let path = tree.path().unwrap();
                let leaf = leaves[usize::try_from(number).unwrap()];
                assert_eq!(root_by(&path, leaf, number, count), Some(tree.root()));
            }
        }
        assert!(Tree::proving(0).path().is_none());
    }
}
