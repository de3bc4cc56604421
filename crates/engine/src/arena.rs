//! Memory for private keys: pages that do not reach the disk, in slots of 32 bytes.
//!
//! A slot stays where it is while its owner moves, so that no copy is left behind, and is erased when its owner is dropped.
//! The pages are locked as far as the system's limit allows, left out of core dumps, and empty in a child process. They are
//! kept for the next key: there are never more than the most keys held at once.

use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use zeroize::Zeroize;

const SLOT: usize = 32;

/// A few pages of any system, and below the limit for locked memory of most.
const BLOCK: usize = 1 << 14;

/// Slots that nobody has.
static FREE: Mutex<Vec<Slot>> = Mutex::new(Vec::new());

/// Where a slot is.
#[derive(Clone, Copy)]
struct Slot(NonNull<[u8; SLOT]>);

// SAFETY: the memory is mapped for the life of the process, and each slot has one owner: the list or a `Locked`.
unsafe impl Send for Slot {}

/// 32 bytes in locked memory, zero at first and again when dropped.
pub(crate) struct Locked(Slot);

// SAFETY: the bytes are reached by its owner alone, and changed through `&mut` only.
unsafe impl Send for Locked {}
// SAFETY: as above.
unsafe impl Sync for Locked {}

impl Locked {
    pub fn new() -> Locked {
        Locked::many(1).pop().expect("one was asked for")
    }

    /// So many of them.
    pub fn many(count: usize) -> Vec<Locked> {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        while free.len() < count {
            free.extend(map());
        }
        let from = free.len() - count;
        free.drain(from..).map(Locked).collect()
    }
}

impl Deref for Locked {
    type Target = [u8; SLOT];

    fn deref(&self) -> &[u8; SLOT] {
        // SAFETY: mapped, initialised, and ours while this lives.
        unsafe { self.0.0.as_ref() }
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut [u8; SLOT] {
        // SAFETY: as above, and borrowed for ourselves alone.
        unsafe { self.0.0.as_mut() }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.zeroize();
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// Another block of slots.
fn map() -> impl Iterator<Item = Slot> {
    // SAFETY: a new mapping, which touches no memory of anybody.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            BLOCK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(start, libc::MAP_FAILED, "there is no memory for keys");
    // What the system does not allow is left: docs/security.md says so.
    // SAFETY: all of these speak of the mapping just made and change none of its bytes.
    unsafe {
        libc::mlock(start, BLOCK);
        #[cfg(target_os = "linux")]
        {
            libc::madvise(start, BLOCK, libc::MADV_DONTDUMP);
            libc::madvise(start, BLOCK, libc::MADV_WIPEONFORK);
        }
    }
    let first = NonNull::new(start.cast::<[u8; SLOT]>()).expect("a mapping is not at zero");
    // SAFETY: so many slots lie in the block; the system aligned and zeroed it.
    (0..BLOCK / SLOT).map(move |at| Slot(unsafe { first.add(at) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_apart_empty_at_first_and_stay_while_their_owner_moves() {
        let mut held: Vec<Locked> = (0..3 * BLOCK / SLOT).map(|_| Locked::new()).collect();
        for (at, slot) in held.iter_mut().enumerate() {
            assert_eq!(**slot, [0; SLOT]);
            slot.fill(at as u8 | 1);
        }
        let places: Vec<*const u8> = held.iter().map(|slot| slot.as_ptr()).collect();
        held.reverse();
        held.reverse();
        for (at, slot) in held.iter().enumerate() {
            assert!(slot.iter().all(|&byte| byte == at as u8 | 1));
            assert_eq!(slot.as_ptr(), places[at]);
        }
        drop(held);
        assert_eq!(*Locked::new(), [0; SLOT], "what is handed out again was erased");
    }

    /// As the kernel tells it: locked, not in core dumps, empty after a fork.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_pages_are_locked_and_not_dumped() {
        let slot = Locked::new();
        let address = slot.as_ptr() as usize;
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
        let mut flags = None;
        let mut inside = false;
        for line in maps.lines() {
            let head = line.split(' ').next().unwrap_or_default();
            if let Some((from, to)) = head.split_once('-')
                && let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
            {
                inside = (from..to).contains(&address);
            } else if inside && let Some(found) = line.strip_prefix("VmFlags:") {
                flags = Some(found.to_owned());
            }
        }
        let flags = flags.expect("the mapping is listed");
        let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
        assert!(has("dd") && has("wf"), "{flags}");
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is written to a place of ours.
        unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
        match has("lo") {
            true => {}
            false if limit.rlim_cur < 1 << 20 => eprintln!("SKIPPED: no memory may be locked here"),
            false => panic!("not locked: {flags}"),
        }
    }
}
