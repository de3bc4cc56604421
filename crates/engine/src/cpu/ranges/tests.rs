//! Stretches against libsecp256k1: every key of small ones, planted keys of large ones.

use secp256k1::{PublicKey, SecretKey};
use warpsmith_chain::Digest;

use super::*;
use crate::origin::public_point;
use crate::prefilter::{Everything, TopList};
use crate::simd;

/// Lets everything pass.
struct All;

impl MayHold for All {
    fn may_hold(&self, _: u64) -> bool {
        true
    }
}

fn scalar(hex: &str) -> Scalar {
    let mut bytes = [0; 32];
    for (at, digit) in format!("{hex:0>64}").chars().enumerate() {
        bytes[at / 2] |= (digit.to_digit(16).expect("hex") as u8) << (4 * (1 - at % 2));
    }
    Scalar::from_be_bytes(&bytes).expect("below n")
}

fn plus(first: Scalar, offset: u64) -> Scalar {
    first.add(Scalar::from_u64(offset))
}

/// The digest of a key by the independent library and the reference code.
fn digest(key: Scalar, form: Form) -> Digest {
    let secret = SecretKey::from_secret_bytes(key.to_be_bytes()).expect("a key");
    form.reference(&public_point(&PublicKey::from_secret_key(&secret)))
}

fn processors() -> Vec<Cpu> {
    simd::available().map(|simd| Cpu::new(simd, 1)).collect()
}

/// Scans a stretch with everything let pass: each key once in each form, in the stretch alone. Digests are compared at
/// every so-manieth key.
fn check_all(cpu: &Cpu, first: Scalar, count: u64, every: u64) {
    let forms = Form::SCANNED;
    let survivors = CpuScanner::new(cpu, &forms, &All).cover(first, count).expect("covered");
    assert_eq!(survivors.len() as u64, count * forms.len() as u64);
    let mut seen: Vec<(u64, Form)> = survivors
        .iter()
        .map(|survivor| (small(survivor.key.sub(first)).expect("near"), survivor.form))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), survivors.len(), "a key came twice");
    assert!(seen.iter().all(|&(offset, _)| offset < count), "a key outside");
    for survivor in &survivors {
        let offset = small(survivor.key.sub(first)).expect("near");
        if offset.is_multiple_of(every) || offset + 2 > count {
            assert_eq!(survivor.digest, digest(survivor.key, survivor.form), "{survivor:?}");
        }
    }
}

#[test]
fn every_key_of_a_stretch_comes_once_and_no_other() {
    for cpu in processors() {
        let (all, forms) = (All, Form::SCANNED);
        let scanner = CpuScanner::new(&cpu, &forms, &all);
        let (group, lanes) = (scanner.group(), scanner.lanes());
        let firsts = [
            scalar("1"),
            scalar("2"),
            scalar("201"), // the table's own points lie around it
            scalar("ffffffffffffff00"),
            scalar("ffffffffffffffffffffffffffffff01"),
            scalar("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0"),
        ];
        for (at, &first) in firsts.iter().enumerate() {
            let counts = [1, 2, group - 1, group, group + 1, lanes * group + 1];
            for count in if at == 0 { &counts[..] } else { &counts[..3] } {
                check_all(&cpu, first, *count, 97);
            }
        }
    }
}

#[test]
fn stretches_end_at_the_last_key_there_is() {
    let last = Scalar::ONE.negate();
    for cpu in processors() {
        let (all, forms) = (All, Form::SCANNED);
        let group = CpuScanner::new(&cpu, &forms, &all).group();
        for count in [1, 2, group, group + 1] {
            check_all(&cpu, last.sub(Scalar::from_u64(count - 1)), count, 97);
            // Shortly before it.
            check_all(&cpu, last.sub(Scalar::from_u64(count + 2)), count, 97);
        }
    }
}

/// Whole batches up to the last key and next to it: every seam of groups and lanes, counted from n, once.
#[test]
fn seams_before_the_last_key_hide_nothing() {
    let key = |distance: u64| Scalar::from_u64(distance).negate();
    for cpu in processors() {
        let (all, forms) = (All, Form::SCANNED);
        let scanner = CpuScanner::new(&cpu, &forms, &all);
        let (group, lane) = (scanner.group(), 2 * scanner.group());
        let window = scanner.lanes() * lane;
        let seams = [group, lane, 2 * lane, window - lane, window].into_iter().filter(|seam| *seam > 0);
        let mut distances: Vec<u64> = seams
            .flat_map(|seam| [seam - 1, seam, seam + 1])
            .chain([1, 2, 3, group / 2, group / 2 + 1])
            .collect();
        distances.sort_unstable();
        distances.dedup();
        for form in Form::SCANNED {
            let few = distances.iter().map(|&distance| digest(key(distance), form).words()[0]);
            let few = TopList::new(few);
            // As many keys as the walk has, fewer, more; and all but the last two.
            for (first, last) in [(window, 1), (window - 5, 1), (window + 1, 1), (window, 3)] {
                let forms = [form];
                let mut scanner = CpuScanner::new(&cpu, &forms, &few);
                scanner.begin(key(first), first - last + 1).expect("begun");
                let found = scanner.rest().expect("covered");
                let mut found: Vec<u64> =
                    found.iter().map(|s| small(s.key.negate()).expect("near n")).collect();
                found.sort_unstable();
                let planted: Vec<u64> =
                    distances.iter().copied().filter(|at| (last..=first).contains(at)).collect();
                assert_eq!(found, planted, "{form:?}, {first} to {last} before n");
            }
        }
    }
}

#[test]
fn planted_keys_are_found_at_every_residue_of_a_group() {
    // One processor does: residues do not depend on the number of lanes.
    let cpu = &processors()[0];
    let first = scalar("123456789abcdef0123456789abcdef0123456789abcdef");
    let (all, forms) = (All, [Form::Hash160]);
    let scanner = CpuScanner::new(cpu, &forms, &all);
    let (group, lanes) = (scanner.group(), scanner.lanes());
    let count = lanes * 3 * group;
    // Every residue, each in another group of another lane.
    let offsets: Vec<u64> = (0..group).map(|r| (r * 7 % (lanes * 3)) * group + r).collect();
    let wanted: Vec<Digest> = offsets.iter().map(|&o| digest(plus(first, o), Form::Hash160)).collect();
    let few = TopList::new(wanted.iter().map(|digest| digest.words()[0]));
    let mut found = CpuScanner::new(cpu, &forms, &few).cover(first, count).expect("covered");
    found.sort_by_key(|survivor| small(survivor.key.sub(first)));
    let mut planted: Vec<(u64, Digest)> = offsets.into_iter().zip(wanted).collect();
    planted.sort_by_key(|&(offset, _)| offset);
    let found: Vec<(u64, Digest)> =
        found.iter().map(|s| (small(s.key.sub(first)).expect("near"), s.digest)).collect();
    assert_eq!(found, planted);
}

/// All of it is held then, and with 48 groups that would be hundreds of megabytes a thread.
#[test]
fn where_everything_passes_a_stretch_is_short() {
    let cpu = &processors()[0];
    let forms = [Form::Hash160];
    let scanner = CpuScanner::new(cpu, &forms, &Everything);
    assert_eq!(scanner.stretch(), scanner.lanes() * scanner.group());
}

#[test]
fn a_whole_stretch_finds_what_lies_at_its_ends_and_seams() {
    for cpu in processors() {
        let first = scalar("ffffffffffffffffffffffffffffff0000000000000000fff");
        let (all, forms) = (All, Form::SCANNED);
        let scanner = CpuScanner::new(&cpu, &forms, &all);
        let (group, most) = (scanner.group(), scanner.stretch());
        let lane = most / scanner.lanes();
        let mut offsets = vec![0, 1, most / 2, most - 2, most - 1];
        offsets.extend([group - 1, group, lane - 1, lane].into_iter().filter(|&o| o < most));
        offsets.sort_unstable();
        offsets.dedup();
        for form in Form::SCANNED {
            let wanted = offsets.iter().map(|&o| digest(plus(first, o), form));
            let few = TopList::new(wanted.map(|digest| digest.words()[0]));
            let found = CpuScanner::new(&cpu, &[form], &few).cover(first, most).expect("covered");
            let mut found: Vec<u64> = found.iter().map(|s| small(s.key.sub(first)).expect("near")).collect();
            found.sort_unstable();
            assert_eq!(found, offsets, "{form:?}");
            // Keys next to the stretch are not its own.
            let found =
                CpuScanner::new(&cpu, &[form], &few).cover(plus(first, 1), most - 2).expect("covered");
            assert_eq!(found.len(), offsets.len() - 2, "{form:?}");
        }
    }
}
