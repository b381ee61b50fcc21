//! Records which messages were appended and synced while changes were recorded.

use std::collections::BTreeMap;

use quire_kernel::probe::recorder;

/// Payloads by their indexes.
pub type Messages = BTreeMap<i64, Vec<u8>>;

/// The operations, in order.
#[derive(Default)]
pub struct History {
    /// Messages, and how many changes there were before each was begun.
    messages: BTreeMap<i64, (Vec<u8>, usize)>,
    /// How many changes there were when messages were synced, and which messages.
    synced: Vec<(usize, Vec<i64>)>,
}

impl History {
    /// Appends a message by `append`, which gives it its index.
    pub fn append(&mut self, payload: Vec<u8>, append: impl FnOnce(&[u8]) -> i64) -> i64 {
        let begun = recorder::count();
        let index = append(&payload);
        assert!(self.messages.insert(index, (payload, begun)).is_none(), "an index comes again");
        index
    }

    /// These messages are on the medium from now on.
    pub fn note_synced(&mut self, indexes: impl IntoIterator<Item = i64>) {
        self.synced.push((recorder::count(), indexes.into_iter().collect()));
    }

    /// The indexes of all messages.
    pub fn indexes(&self) -> Vec<i64> {
        self.messages.keys().copied().collect()
    }

    /// How many messages were begun before a moment.
    pub fn begun(&self, moment: usize) -> usize {
        self.messages.values().filter(|(_, begun)| *begun < moment).count()
    }

    /// Checks that synced messages are whole, and that there is nothing that was not appended.
    pub fn check(&self, case: &str, found: &Messages, moment: usize) {
        for (_, covered) in self.synced.iter().filter(|(at, _)| *at <= moment) {
            for index in covered {
                let (payload, _) = &self.messages[index];
                let there = found.get(index);
                assert!(there == Some(payload), "{case}: synced, and lost: index={index:#x}");
            }
        }
        for (index, payload) in found {
            let sent = self.messages.get(index).filter(|(_, begun)| *begun < moment);
            let Some((sent, _)) = sent else { panic!("{case}: invented: index={index:#x}") };
            assert!(is_torn_from(payload, sent), "{case}: other bytes: index={index:#x}");
        }
    }
}

/// Whether `found` is `sent` with bytes missing: those read as zeros, which are never sent.
fn is_torn_from(found: &[u8], sent: &[u8]) -> bool {
    let same = |(found, sent): (&u8, &u8)| *found == *sent || *found == 0;
    found.len() == sent.len() && found.iter().zip(sent).all(same)
}
