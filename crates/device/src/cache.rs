//! Compiled kernels, kept between runs in a folder of files.
//!
//! A file's name is a hash of all that decides its contents. Its head holds a magic, that hash again and a
//! checksum, so that a torn, foreign or damaged file is taken for absent and written anew. Files appear whole
//! (a temporary name, then a rename). Nothing here is an error: without a writable folder there is no cache.
//! The checksum finds accidents, not attackers: who can write to the user's folder needs no kernel.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Cache;

/// 16 bytes that start every file; the last one is the layout's version.
const MAGIC: &[u8; 16] = b"warpsmith-krnl\0\x01";
const HEAD: usize = 16 + 16 + 16 + 8;

/// FNV-1a, 128 bits.
struct Fnv(u128);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0x6c62272e07bb014262b821756295c58d)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000000001000000000000000000013b);
        }
    }
}

fn checksum(bytes: &[u8]) -> [u8; 16] {
    let mut hash = Fnv::new();
    hash.add(bytes);
    hash.0.to_le_bytes()
}

/// One compiled kernel's place: a folder, if there is a cache at all, and the hash that names it.
#[derive(Debug)]
pub(crate) struct CacheEntry {
    folder: Option<PathBuf>,
    key: [u8; 16],
}

impl CacheEntry {
    /// The entry for these parts. Lengths are hashed too, so that no two lists of parts run together.
    pub fn new(cache: &Cache, parts: &[&str]) -> CacheEntry {
        let mut hash = Fnv::new();
        for part in std::iter::once(&env!("CARGO_PKG_VERSION")).chain(parts) {
            hash.add(&(part.len() as u64).to_le_bytes());
            hash.add(part.as_bytes());
        }
        CacheEntry { folder: folder(cache), key: hash.0.to_le_bytes() }
    }

    fn path(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{:032x}.kernel", u128::from_le_bytes(self.key))))
    }

    /// The stored bytes, if they are there and whole.
    pub fn load(&self) -> Option<Vec<u8>> {
        let mut file = fs::read(self.path()?).ok()?;
        let head = file.get(..HEAD)?;
        let whole = &head[..16] == MAGIC
            && head[16..32] == self.key
            && head[48..56] == ((file.len() - HEAD) as u64).to_le_bytes()
            && head[32..48] == checksum(&file[HEAD..]);
        whole.then(|| file.split_off(HEAD))
    }

    /// Stores, or quietly does not.
    pub fn store(&self, image: &[u8]) {
        if let (Some(folder), Some(path)) = (&self.folder, self.path()) {
            let _ = store(folder, &path, &self.key, image);
        }
    }
}

fn store(folder: &Path, path: &Path, key: &[u8; 16], image: &[u8]) -> std::io::Result<()> {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)?;
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{}-{serial}.tmp", std::process::id()));
    let write = || {
        let mut file = fs::File::create(&temporary)?;
        for part in [MAGIC, key, &checksum(image), &(image.len() as u64).to_le_bytes()[..], image] {
            file.write_all(part)?;
        }
        drop(file);
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// The folder a cache lives in.
fn folder(cache: &Cache) -> Option<PathBuf> {
    match cache {
        Cache::Off => None,
        Cache::At(path) => Some(path.clone()),
        Cache::User => user_folder(|name| std::env::var_os(name).map(PathBuf::from)),
    }
}

/// The folder of [`Cache::User`], for what else is found out about a device: none where nothing is to be kept.
pub fn user_cache() -> Option<PathBuf> {
    folder(&Cache::User)
}

/// The user's folder, by the environment `get` shows. A relative `XDG_CACHE_HOME` counts as unset, as its
/// specification demands.
fn user_folder(get: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(path) = get("WARPSMITH_CACHE") {
        return (!path.as_os_str().is_empty()).then_some(path);
    }
    let absolute = |name| get(name).filter(|path| path.is_absolute());
    let base = if cfg!(windows) { absolute("LOCALAPPDATA") } else { absolute("XDG_CACHE_HOME") };
    Some(base.or_else(|| Some(absolute("HOME")?.join(".cache")))?.join("warpsmith").join("kernels"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(folder: &Path, parts: &[&str]) -> CacheEntry {
        CacheEntry::new(&Cache::At(folder.to_owned()), parts)
    }

    #[test]
    fn what_is_stored_comes_back_and_only_under_its_parts() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("made/on/demand");
        entry(&folder, &["a", "bc"]).store(b"image");
        assert_eq!(entry(&folder, &["a", "bc"]).load().as_deref(), Some(&b"image"[..]));
        for other in [&["ab", "c"][..], &["a", "bc", ""], &["a"], &["a", "bd"]] {
            assert_eq!(entry(&folder, other).load(), None, "{other:?}");
        }
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 1, "no temporary file stays: {names:?}");
    }

    #[test]
    fn any_damaged_byte_makes_a_file_absent_and_a_new_store_heals_it() {
        let dir = tempfile::tempdir().unwrap();
        let e = entry(dir.path(), &["x"]);
        e.store(b"some image");
        let path = e.path().unwrap();
        let good = fs::read(&path).unwrap();
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 0x10;
            fs::write(&path, &bad).unwrap();
            assert_eq!(e.load(), None, "byte {i}");
            fs::write(&path, &good[..i]).unwrap();
            assert_eq!(e.load(), None, "cut at {i}");
        }
        e.store(b"some image");
        assert_eq!(e.load().as_deref(), Some(&b"some image"[..]));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        let e = entry(&file.join("below"), &["x"]);
        e.store(b"image");
        assert_eq!(e.load(), None);
        let off = CacheEntry::new(&Cache::Off, &["x"]);
        off.store(b"image");
        assert_eq!(off.load(), None);
    }

    #[test]
    fn the_users_folder_follows_the_environment() {
        let with = |vars: &'static [(&str, &str)]| {
            user_folder(move |name| vars.iter().find(|v| v.0 == name).map(|v| PathBuf::from(v.1)))
        };
        assert_eq!(with(&[("WARPSMITH_CACHE", ""), ("HOME", "/h")]), None);
        assert_eq!(with(&[("WARPSMITH_CACHE", "/w"), ("HOME", "/h")]), Some(PathBuf::from("/w")));
        assert_eq!(with(&[]), None);
        if cfg!(unix) {
            let under = |base: &str| Some(PathBuf::from(base).join("warpsmith/kernels"));
            assert_eq!(with(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), under("/x"));
            assert_eq!(with(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), under("/h/.cache"));
        }
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // The empty input gives the offset basis; "a" is from the reference vectors.
        assert_eq!(u128::from_le_bytes(checksum(b"")), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(u128::from_le_bytes(checksum(b"a")), 0xd228cb696f1a8caf78912b704e4a8964);
    }
}
