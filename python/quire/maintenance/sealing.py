"""Sealing queues, proving messages, and checking seals and proofs."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from quire._common import arguments
from quire._common.durable import SafeFolder
from quire._common.roll_file_names import CHECKSUMS
from quire._native import hash_cycle
from quire.errors import QuireError, SealError, SettingError, UnsupportedError
from quire.formats import detection
from quire.handles.journal.queue import JournalQueue
from quire.opening.opener import open_without_key as open_queue
from quire.sealed.append_check import check_appended
from quire.sealed.proof import Proof
from quire.sealed.seal_chain import Chain, Checkpoint, tree_of
from quire.sealed.seal_check import Row, Wanted, check
from quire.sealed.seal_files import SEALS, parse_checkpoint, read_chain
from quire.sealed.sealer import Step, seal_queue
from quire.sealed.signing import Signer, Trust
from quire.sealed.trees import message_hash, path_of

_LONGEST: Final = 1 << 16


class Seal(NamedTuple):
    """
    The newest checkpoint of a queue, from :func:`seal`.

    Attributes:
        number: Its number, from 0.
        time_ms: When it was made, in epoch milliseconds.
        cycles: How many cycles were ever sealed.
        root: The root of the tree over them.
        key: The id of the key that signed it; None if it is not signed.

    Examples:
        >>> index = appender.write_text("hello")
        >>> found = quire.maintenance.seal("orders")
        >>> found.number, found.cycles, len(found.root), found.key
        (0, 1, 32, None)

    """

    number: int
    time_ms: int
    cycles: int
    root: bytes
    key: str | None


def seal(
    path: str | PathLike[str],
    *,
    sign: str | PathLike[str] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    older: bool = False,
) -> Seal | None:
    """
    Seal the messages of a queue: afterwards :func:`quire.verify` detects every change.

    Messages sealed before are not read again, and messages appended meanwhile are part of the next
    seal. Java ignores the files.

    Args:
        path: The queue's directory; it may be in use.
        sign: The file of an Ed25519 private key, in PEM.
        checkpoint: Write the newest checkpoint to this file; keep it where nobody with write access
            to the queue can change it. An existing checkpoint there must be of this queue.
        older: Also seal, and sign, cycles that appeared between sealed, or signed, ones: a Java
            writer whose clock is late makes such cycles, and so does an attacker who inserts
            messages.

    Returns:
        The newest checkpoint; None if there is no message to seal.

    Raises:
        SealError: Seals are damaged, messages changed since they were sealed, *sign* is not a key,
            the seals do not continue from the existing checkpoint, or the checkpoint to be signed
            has a cycle between signed ones, or is dated in the future.
        LockHeldError: Another process seals the queue.
        UnsupportedError: The queue is of another format.

    Examples:
        >>> index = appender.write_text("hello")
        >>> quire.maintenance.seal("orders").number
        0
        >>> quire.verify("orders", seals=True).ok
        True

    """
    signer = None if sign is None else Signer(arguments.path("sign", sign))
    kept = None if checkpoint is None else Path(arguments.path("checkpoint", checkpoint))
    with _opened(path) as (queue, folder):
        if kept is not None and kept.exists():
            _check_goes_on(folder, kept)
        made = seal_queue(queue, folder, signer, older=bool(arguments.flag("older", older)))
    if made is None:
        return None
    if kept is not None:
        _replace(kept, made.head_line() + b"\n")
    signature = made.signature
    key = None if signature is None else signature.key.hex()
    return Seal(made.number, made.time_ms, made.size, made.root, key)


def prove(
    path: str | PathLike[str],
    index: int,
    *,
    message_to: str | PathLike[str] | None = None,
) -> bytes:
    """
    Return a proof that a message is in a queue, up to the newest checkpoint.

    The proof holds hashes and no message: to check it against the message, you need the message
    itself.

    Args:
        path: The queue's directory.
        index: The index of the message.
        message_to: Write the message to this file as it is stored, and so proven: in an encrypted
            or compressed queue the stored bytes differ from those that are read. No key is needed.

    Raises:
        OSError: The file cannot be written.
        SealError: The message is not sealed, or not what was sealed.
        UnsupportedError: The queue is of another format.

    Examples:
        >>> index = appender.write_text("hello")
        >>> _ = quire.maintenance.seal("orders")
        >>> proof = quire.maintenance.prove("orders", index)
        >>> quire.maintenance.check_proof(proof).index == index
        True

    """
    kept = None if message_to is None else Path(arguments.path("message_to", message_to))
    with _opened(path) as (queue, folder):
        chain, _ = read_chain(folder)
        signed = [it.checkpoint.number for it in chain.entries if it.checkpoint.signature]
        cycle, number = queue.roll_cycle.to_cycle(index), queue.roll_cycle.to_sequence(index)
        proof, message = _prove(queue, chain, (cycle, number, index), signed)
    if kept is not None:
        _replace(kept, message)
    return proof.to_bytes()


def _replace(file: Path, content: bytes) -> None:
    """Write a file that the user names."""
    with SafeFolder.at(file.absolute().parent) as around:
        around.replace(file.name, content)


def _prove(
    queue: JournalQueue, chain: Chain, place: tuple[int, int, int], signed: list[int]
) -> tuple[Proof, bytes]:
    """
    Prove a message by the newest signed checkpoint that has it, or else by the newest one.

    Returns:
        The proof, and the message as it is stored.

    """
    cycle, number, index = place
    for at in (*signed[-1:], len(chain.entries) - 1):
        cycles = chain.cycles_at(at)
        sealed = cycles.get(cycle)
        if sealed is not None and number < sealed.count:
            break
    else:
        raise SealError(f"the message is not sealed: index={index:#x} path={queue.path}")
    found = hash_cycle(
        queue, cycle, count=0, peaks=[], marks=[], until=sealed.count, proving=number
    )
    step = None if found is None else Step(*found)
    if step is None or step.proven is None or step.root != sealed.root:
        raise SealError(
            f"the messages of the cycle are not those that were sealed: index={index:#x}"
            f" path={queue.path} (quire verify says which)"
        )
    message, before, path = step.proven
    ordered = sorted(cycles)
    where = ordered.index(cycle)
    proof = Proof(
        index=index,
        message=message_hash(message),
        before=before,
        cycle=cycle,
        number=number,
        place=where,
        sealed=sealed,
        path=path,
        cycle_path=path_of(tree_of(cycles), where),
        checkpoint=chain.entries[at].checkpoint,
    )
    return proof, message


@dataclass(frozen=True, slots=True)
class Proven:
    """
    What a proof proves, from :func:`check_proof`.

    Attributes:
        index: The index of the message.
        queue: The random id of the queue, in hexadecimal.
        checkpoint: The number of the checkpoint.
        time_ms: When that was made, in epoch milliseconds.
        key: The id of the key that signed it; None if *trust* was not given.

    Examples:
        >>> index = appender.write_text("hello")
        >>> _ = quire.maintenance.seal("orders")
        >>> found = quire.maintenance.check_proof(quire.maintenance.prove("orders", index))
        >>> found.index == index, found.checkpoint, found.key
        (True, 0, None)

    """

    index: int
    queue: str
    checkpoint: int
    time_ms: int
    key: str | None


def check_proof(
    proof: bytes,
    *,
    trust: str | PathLike[str] | None = None,
    message: bytes | None = None,
) -> Proven:
    """
    Check a proof; the queue is not needed.

    Args:
        proof: The bytes that :func:`prove` returned.
        trust: The file of an Ed25519 public key, in PEM, that must have signed the checkpoint.
        message: The expected message at the index, as it is stored: see *message_to* of
            :func:`prove`.

    Raises:
        SealError: The proof does not lead from the message to a checkpoint, or the key did not sign
            that checkpoint.

    Examples:
        >>> index = appender.write_bytes(b"hello")
        >>> _ = quire.maintenance.seal("orders")
        >>> proof = quire.maintenance.prove("orders", index)
        >>> quire.maintenance.check_proof(proof, message=b"hello").checkpoint
        0
        >>> quire.maintenance.check_proof(proof, message=b"other")
        Traceback (most recent call last):
        quire.errors.SealError: the proof is of another message: index=...

    """
    found = Proof.parse(proof)
    where = f"index={found.index:#x} checkpoint={found.checkpoint.number}"
    if not found.is_right():
        raise SealError(f"the proof does not lead to its checkpoint: {where}")
    if message is not None and message_hash(message) != found.message:
        raise SealError(f"the proof is of another message: {where}")
    key = None
    if trust is not None:
        trusted = Trust(arguments.path("trust", trust))
        key = trusted.key_id.hex()
        if not trusted.is_signed(found.checkpoint):
            raise SealError(f"the checkpoint is not signed by the key: {where} key={key}")
    checkpoint = found.checkpoint
    return Proven(found.index, checkpoint.queue.hex(), checkpoint.number, checkpoint.time_ms, key)


def wanted_seals(
    *, seals: bool, trust: str | PathLike[str] | None, since: str | PathLike[str] | None
) -> Wanted:
    """
    Return what :func:`quire.verify` asks of seals.

    Raises:
        SealError: *trust* is not a key, or *since* not a checkpoint.

    """
    key = None if trust is None else Trust(arguments.path("trust", trust))
    kept = None if since is None else _checkpoint_in(Path(arguments.path("since", since)))
    is_wanted = arguments.flag("seals", seals) or key is not None or kept is not None
    return Wanted(bool(is_wanted), key, kept)


def check_seals(path: str, wanted: Wanted) -> Iterator[Row]:
    """Yield findings about the seals of a queue, and about messages that are not as sealed."""
    has_seals = os.path.isdir(path) and os.path.lexists(os.path.join(path, SEALS))  # noqa: PTH112, PTH118
    if not has_seals and wanted.seals:
        yield "no-seals", path, None, "no checkpoint", "one at least"
    if not has_seals and not _has_checksums(path):
        return
    try:
        with _opened(path) as (queue, folder):
            changed = set[str]()
            for row in check(queue, folder, wanted) if has_seals else ():
                if row[0] == "changed-message":
                    changed.add(row[1])
                yield row
            yield from check_appended(queue, folder, changed)
    except SettingError:
        raise
    except QuireError as error:
        yield "seals", path, None, str(error), "a queue to compare with its seals"


def _has_checksums(path: str) -> bool:
    """Whether appenders left checksums in the directory of a queue."""
    return os.path.isdir(path) and any(it.endswith(CHECKSUMS) for it in os.listdir(path))  # noqa: PTH112, PTH208


@contextmanager
def _opened(path: str | PathLike[str]) -> Generator[tuple[JournalQueue, SafeFolder]]:
    place = arguments.path("path", path)
    kind = detection.format_of(place)
    if Path(place).is_file() or kind not in {None, detection.CHRONICLE}:
        raise UnsupportedError(
            f"only the directory of a queue of Chronicle Queue 5 is sealed: path={place}"
        )
    with (
        open_queue(place, read_only=True, create=False, format="chronicle") as queue,
        SafeFolder.at(place) as folder,
    ):
        yield queue, folder


def _checkpoint_in(file: Path) -> Checkpoint:
    with file.open("rb") as opened:
        return parse_checkpoint(opened.read(_LONGEST), str(file))


def _check_goes_on(folder: SafeFolder, file: Path) -> None:
    chain, _ = read_chain(folder)
    kept = _checkpoint_in(file)
    if not chain.has(kept):
        raise SealError(
            f"the seals do not go on from the checkpoint that is there: file={file}"
            f" number={kept.number} queue={folder.path} (another queue's, or one that was rolled"
            " back; move the file away to begin again)"
        )
