//! What the tests of all programs share: the joined text as a host program, and independent curve arithmetic.

#![allow(dead_code)] // each test uses its part

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k256::elliptic_curve::ops::Reduce;
use k256::elliptic_curve::sec1::ToSec1Point;
use k256::{ProjectivePoint, Scalar};
use num_bigint::BigUint;
use warpsmith_kernel::{Program, Spec, TablePlace, abi, join};

/// The joined text of a spec with a driver behind it, as a program of its own, so that sanitizers work from `cargo
/// test`.
pub struct HostProgram {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl HostProgram {
    /// The search of a spec.
    pub fn search(spec: Spec, driver: &str) -> Self {
        Self::build(&join(&Spec { ptx: false, table: TablePlace::Global, ..spec }).text, driver)
    }

    /// Any text.
    pub fn build(text: &str, driver: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("kernels.c");
        let launch = include_str!("../host/launch.c");
        let text = format!("{text}#line 1 \"launch.c\"\n{launch}#line 1 \"driver.c\"\n{driver}");
        std::fs::write(&source, text).unwrap();
        let path = folder.path().join("kernels");
        // Without the sanitizers' libraries the plain program still proves the arithmetic.
        if !compile(&source, &path, &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]) {
            eprintln!("no sanitizers here: built without");
            assert!(compile(&source, &path, &[]), "the joined text does not compile as C");
        }
        Self { _folder: folder, path }
    }

    pub fn run(&self, request: &[u32]) -> Vec<u32> {
        let mut child =
            Command::new(&self.path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let bytes: Vec<u8> = request.iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
        let mut answer = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut answer).unwrap();
        writer.join().unwrap();
        assert!(child.wait().unwrap().success(), "the kernel program failed");
        answer.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
    }
}

/// What runs the walk of a scan, and that of a search.
pub const SCAN_WALK: &str =
    concat!("#define WALK scan_walk\n#define WALK_WORDS SCAN_WORDS\n", include_str!("../host/walk.c"));
const POINTS_WALK: &str =
    concat!("#define WALK points_walk\n#define WALK_WORDS HIT_WORDS\n", include_str!("../host/walk.c"));

/// Both programs of a search over points.
pub struct PointsPrograms {
    walk: HostProgram,
    test: HostProgram,
    parts: u32,
}

impl PointsPrograms {
    /// Those of a spec whose program is [`Program::Points`], with so many threads a lane that test.
    pub fn build(spec: Spec, parts: u32) -> Self {
        let Program::Points { digest, .. } = spec.program else { panic!("no points: {spec:?}") };
        let walk = Spec { program: Program::PointsWalk { digest }, ..spec };
        Self {
            walk: HostProgram::search(walk, POINTS_WALK),
            test: HostProgram::search(spec, include_str!("../host/points_test.c")),
            parts,
        }
    }

    /// Runs steps of some lanes: centres after them, then a hit buffer with what both programs reported.
    pub fn run(&self, lanes: u32, steps: u32, search: &PointsRequest<'_>) -> Vec<u32> {
        let PointsRequest { centres, table, params, filter, capacity, best } = *search;
        let request = [&[lanes, steps, capacity, 0][..], centres, table].concat();
        let walked = self.walk.run(&request);
        let (rest, faults) = walked.split_at(walked.len() - abi::hits_words(capacity));
        let (points, ends) = rest.split_at(rest.len() - abi::centres_words(lanes));
        let head = [lanes, steps, filter.len() as u32, capacity, best, self.parts, 0, 0];
        let tested = self.test.run(&[&head[..], params, filter, points].concat());
        let records = |hits: &[u32]| {
            let written = hits[0].min(capacity) as usize;
            hits[abi::HITS_HEADER..][..abi::HIT_WORDS * written].to_vec()
        };
        let mut hits = [records(faults), records(&tested)].concat();
        hits.truncate(capacity as usize * abi::HIT_WORDS);
        let head = [faults[0] + tested[0], capacity, 0, tested[abi::HITS_BEST]];
        [ends, &head[..], &hits].concat()
    }
}

/// What a search over points is asked.
#[derive(Clone, Copy)]
pub struct PointsRequest<'a> {
    pub centres: &'a [u32],
    pub table: &'a [u32],
    pub params: &'a [u32],
    pub filter: &'a [u32],
    pub capacity: u32,
    pub best: u32,
}

fn compile(source: &Path, output: &Path, flags: &[&str]) -> bool {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler)
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(output)
        .status();
    status.is_ok_and(|s| s.success())
}

pub type Point = (BigUint, BigUint);

pub fn p() -> BigUint {
    (BigUint::from(1u32) << 256) - (BigUint::from(1u32) << 32) - 977u32
}

pub fn beta() -> BigUint {
    BigUint::parse_bytes(b"7ae96a2b657c07106e64479eac3434e99cf0497512f58995c1396c28719501ee", 16).unwrap()
}

pub fn limbs(a: &BigUint) -> [u32; 8] {
    let mut limbs = [0; 8];
    let digits = a.to_u32_digits();
    limbs[..digits.len()].copy_from_slice(&digits);
    limbs
}

pub fn from_limbs(limbs: impl Iterator<Item = u32>) -> BigUint {
    BigUint::new(limbs.collect())
}

/// xorshift64*: enough for inputs, and the same on every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    pub fn number(&mut self) -> BigUint {
        from_limbs((0..8).map(|_| self.next()))
    }

    pub fn scalar(&mut self) -> Scalar {
        scalar(&self.number())
    }
}

pub fn scalar(a: &BigUint) -> Scalar {
    let mut bytes = [0u8; 32];
    let digits = a.to_bytes_be();
    bytes[32 - digits.len()..].copy_from_slice(&digits);
    Scalar::reduce(&k256::FieldBytes::from(bytes))
}

pub fn point(k: &Scalar) -> Point {
    let encoded = ProjectivePoint::mul_by_generator(k).to_affine().to_sec1_point(false);
    (BigUint::from_bytes_be(encoded.x().unwrap()), BigUint::from_bytes_be(encoded.y().unwrap()))
}

pub fn lambda(power: u32) -> Scalar {
    let text = b"5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72";
    let root = scalar(&BigUint::parse_bytes(text, 16).unwrap());
    (0..power).fold(Scalar::ONE, |product, _| product * root)
}

/// Keccak-256 by another implementation.
pub fn keccak(message: &[u8]) -> [u8; 32] {
    use sha3::Digest;
    sha3::Keccak256::digest(message).into()
}

/// The last 20 bytes of a hash.
pub fn address(message: &[u8]) -> [u8; 20] {
    keccak(message)[12..].try_into().unwrap()
}

/// RIPEMD-160 of SHA-256 by other implementations.
pub fn hash160(message: &[u8]) -> [u8; 20] {
    use sha2::Digest;
    ripemd::Ripemd160::digest(sha2::Sha256::digest(message)).into()
}

/// The contract an account creates, by the RLP of the yellow paper's appendix B.
pub fn create(sender: &[u8; 20], nonce: u64) -> [u8; 20] {
    fn string(bytes: &[u8]) -> Vec<u8> {
        match bytes {
            [byte] if *byte < 0x80 => vec![*byte],
            _ => [&[0x80 + bytes.len() as u8], bytes].concat(),
        }
    }
    let number: Vec<u8> = nonce.to_be_bytes().into_iter().skip_while(|&b| b == 0).collect();
    let items = [string(sender), string(&number)].concat();
    address(&[&[0xc0 + items.len() as u8], items.as_slice()].concat())
}

/// A digest as filters read it: most significant word first.
pub fn words(digest: &[u8]) -> [u32; 8] {
    let mut bytes = [0; 32];
    bytes[..digest.len()].copy_from_slice(digest);
    std::array::from_fn(|i| u32::from_be_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()))
}

/// The top 64 bits of a digest.
pub fn top(digest: &[u8]) -> u64 {
    u64::from_be_bytes(digest[..8].try_into().unwrap())
}
