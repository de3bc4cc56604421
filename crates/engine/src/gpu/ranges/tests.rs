//! Scans on OpenCL for the processor, against libsecp256k1: every key of a stretch once, wherever it begins and ends.

use std::collections::HashMap;

use warpsmith_chain::Digest;
use warpsmith_store::{Filter, Width};

use super::*;
use crate::gpu::tests::pocl;
use crate::origin::{Secret, public_point};
use crate::prefilter::{Fuse, MayHold, TopList};

const FORMS: [Form; 6] = Form::SCANNED;

fn plus(first: Scalar, offset: u64) -> Scalar {
    first.add(Scalar::from_u64(offset))
}

/// The survivors that keys would be in these forms, by the independent library and the reference code.
fn expected(keys: impl Iterator<Item = Scalar>, forms: &[Form]) -> Vec<Survivor> {
    let of_key = |key: Scalar| {
        let public = Secret::from_bytes(&key.to_be_bytes()).expect("a key").public_key();
        let point = public_point(&public);
        forms
            .iter()
            .map(move |&form| Survivor { key, form, digest: form.reference(&point) })
            .collect::<Vec<_>>()
    };
    keys.flat_map(of_key).collect()
}

fn tops(survivors: &[Survivor]) -> Vec<u64> {
    let mut tops: Vec<u64> = survivors.iter().map(|s| s.digest.words()[0]).collect();
    tops.sort_unstable();
    tops.dedup();
    tops
}

fn list(survivors: &[Survivor]) -> ScanFilter {
    ScanFilter::List(TopList::new(tops(survivors)))
}

/// Scans the keys as one batch.
fn run(scanner: &mut RangeScanner<'_>, first: Scalar, count: u64) -> Vec<Survivor> {
    scanner.begin(first, count).expect("begun");
    let (mut done, mut all) = (0, Vec::new());
    while done < count {
        let (keys, survivors) = scanner.go_on().expect("covered");
        assert!(keys > 0 && keys <= count - done, "{keys} of {}", count - done);
        for survivor in &survivors {
            let offset = small(survivor.key.sub(first)).expect("near");
            assert!((done..done + keys).contains(&offset), "a key outside of what was covered");
        }
        done += keys;
        all.extend(survivors);
    }
    assert_eq!(scanner.go_on().expect("nothing"), (0, Vec::new()));
    all
}

/// Whether these are the same, each once, in any order.
#[track_caller]
fn assert_same(found: &[Survivor], wanted: &[Survivor]) {
    let count = |survivors: &[Survivor]| {
        let mut times: HashMap<(Scalar, Form, Digest), u32> = HashMap::new();
        survivors.iter().for_each(|s| *times.entry((s.key, s.form, s.digest)).or_default() += 1);
        times
    };
    let (found, wanted) = (count(found), count(wanted));
    for (survivor, times) in &wanted {
        assert_eq!(found.get(survivor), Some(times), "{survivor:?} was to come back once");
    }
    assert_eq!(found.len(), wanted.len(), "something came back that was not planted");
}

#[test]
fn every_key_comes_once_in_ranges_of_any_size_and_place() {
    let Some(gpu) = pocl() else { return };
    let filter = list(&[]);
    let scanner = RangeScanner::new(&gpu, &FORMS, &filter).expect("a scanner");
    let (group, step, half) = (scanner.group(), scanner.step_keys(), scanner.group() / 2);
    // More than the record buffer holds, across steps.
    let mut ranges = vec![(Scalar::LAMBDA, 2 * step + 3)];
    ranges.extend([1, 2, group - 1, group, group + 1, step - 1, step + 1].map(|count| (Scalar::ONE, count)));
    // The step point is a centre: of the first lane, of the third, and of none.
    let firsts = [step - half, step - half - 2 * group, step - half - 2 * group + 1];
    ranges.extend(firsts.map(|first| (Scalar::from_u64(first), 3 * group)));
    // Across words of the key.
    for bits in [32, 64, 128, 192] {
        let power = (0..bits).fold(Scalar::ONE, |power, _| power.add(power));
        ranges.push((power.sub(Scalar::from_u64(group)), 2 * group));
    }
    // Up to the last key there is, and shortly before.
    let last = Scalar::ONE.negate();
    for (count, before) in [(1, 0), (2, 0), (group + 1, 0), (group, 3), (4 * step + 5, 0)] {
        ranges.push((last.sub(Scalar::from_u64(count - 1 + before)), count));
    }
    // Each key of each range is looked for in every form, and so are the keys beside them.
    let inside =
        |&(first, count): &(Scalar, u64)| expected((0..count).map(|offset| plus(first, offset)), &FORMS);
    let wanted: Vec<Vec<Survivor>> = ranges.iter().map(inside).collect();
    let beside = ranges.iter().flat_map(|&(first, count)| [first.sub(Scalar::ONE), plus(first, count)]);
    let beside = expected(beside.filter(|key| !key.is_zero()), &FORMS);
    let filter = list(&[wanted.concat(), beside].concat());
    let mut scanner = RangeScanner::new(&gpu, &FORMS, &filter).expect("a scanner");
    for (&(first, count), wanted) in ranges.iter().zip(&wanted) {
        assert_same(&run(&mut scanner, first, count), wanted);
    }
}

/// Near n a walk is laid back to end with n - 1: every seam of it, of steps, lanes and groups, in one batch and in many, and wherever
/// a batch begins. The processor has no part in it.
#[test]
fn the_last_keys_are_the_cards_and_come_once() {
    let Some(gpu) = pocl() else { return };
    let empty = list(&[]);
    let scanner = RangeScanner::new(&gpu, &FORMS, &empty).expect("a scanner");
    let (group, step, half) = (scanner.group(), scanner.step_keys(), scanner.group() / 2);
    let block = group * u64::from(scanner.shape.spec.block);
    // By their distance from n: the last keys, the centres of the last group and its neighbour, and what lies around each seam.
    let seams = [group, 2 * group, block, step - group, step, 2 * step, 3 * step, 4 * step];
    let near = seams.into_iter().flat_map(|seam| [seam - 1, seam, seam + 1, seam + half + 1]);
    let mut distances: Vec<u64> = near.chain([1, 2, 3, half, half + 1, half + 2]).collect();
    distances.sort_unstable_by(|a, b| b.cmp(a));
    distances.dedup();
    let key = |distance: u64| Scalar::from_u64(distance).negate();
    let all = [
        5 * step + 7,
        3 * step + 1,
        3 * step,
        3 * step - 1,
        2 * step + 5,
        step + 1,
        step,
        step - 1,
        group,
        2,
        1,
    ];
    for (forms, beginnings) in [(&FORMS[..], &[3 * step + 1, group][..]), (&[Form::Hash160], &all)] {
        let planted = expected(distances.iter().map(|&distance| key(distance)), forms);
        let filter = list(&planted);
        let mut scanner = RangeScanner::new(&gpu, forms, &filter).expect("a scanner");
        for &start in beginnings {
            let is_in = |s: &&Survivor| small(s.key.negate()).is_some_and(|distance| distance <= start);
            let wanted: Vec<Survivor> = planted.iter().filter(is_in).copied().collect();
            assert_same(&run(&mut scanner, key(start), start), &wanted);
            // Where it would begin, the card does.
            scanner.begin(key(start), start).expect("begun");
            assert_eq!(scanner.set_out(), Ok(None), "{start} keys before n");
            // In batches that end anywhere, also within what was laid back.
            let (mut left, mut found) = (start, Vec::new());
            for size in
                [step / 2 + 1, step, 3, step + 1, group].into_iter().chain(std::iter::repeat(step - 1))
            {
                let size = size.min(left);
                if size == 0 {
                    break;
                }
                found.extend(run(&mut scanner, key(left), size));
                if let Some(proof) = scanner.proof().expect("asked") {
                    proof().expect("its lanes are where they must be");
                }
                left -= size;
            }
            assert_same(&found, &wanted);
        }
    }
    // More than the records hold, laid back: done again over fewer lanes.
    let all = expected((1..=step + 9).map(key), &[Form::Hash160, Form::X]);
    let (forms, filter) = ([Form::Hash160, Form::X], list(&all));
    let mut scanner = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner");
    assert_same(&run(&mut scanner, key(step + 9), step + 9), &all);
}

#[test]
fn planted_keys_come_back_at_every_residue_of_a_group_and_from_every_lane() {
    let Some(gpu) = pocl() else { return };
    let first = Scalar::LAMBDA;
    let filter = list(&[]);
    let scanner = RangeScanner::new(&gpu, &FORMS, &filter).expect("a scanner");
    let (group, lanes) = (scanner.group(), u64::from(scanner.lanes()));
    for form in FORMS {
        // One key of each lane, every residue in turn, in steps 0 to 4.
        let offsets = (0..lanes).map(|lane| ((lane % 5) * lanes + lane) * group + lane % group);
        let planted = expected(offsets.map(|offset| plus(first, offset)), &[form]);
        let (forms, filter) = ([form], list(&planted));
        let mut scanner = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner");
        assert_same(&run(&mut scanner, first, 5 * lanes * group), &planted);
    }
}

/// Batches that follow each other, that do not, and that end in the middle of a step: nothing is lost or found twice where
/// launches ran ahead.
#[test]
fn batches_meet_without_gap_or_overlap() {
    let Some(gpu) = pocl() else { return };
    let first = Scalar::LAMBDA;
    let forms = [Form::Hash160];
    let filter = list(&[]);
    let step = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner").step_keys();
    let counts = [2 * step, 3 * step, step, step + 1, 2 * step - 1, step, 7];
    let mut starts: Vec<u64> = Vec::new();
    let end = counts.iter().fold(0, |at, count| {
        starts.push(at);
        at + count
    });
    let edges = starts.iter().flat_map(|&at| [at, at + 1, (at + step).min(end - 1)]).chain([end - 1]);
    let mut edges: Vec<u64> = edges.chain(starts.iter().skip(1).map(|at| at - 1)).collect();
    edges.sort_unstable();
    edges.dedup();
    let planted = expected(edges.iter().map(|&offset| plus(first, offset)), &forms);
    let filter = list(&planted);
    let mut scanner = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner");
    for order in [vec![0, 1, 2, 3, 4, 5, 6], vec![5, 0, 1, 3, 2, 6, 4]] {
        let mut found = Vec::new();
        for batch in order {
            found.extend(run(&mut scanner, plus(first, starts[batch]), counts[batch]));
        }
        assert_same(&found, &planted);
    }
}

/// A scan that ends takes in what is under way, no more, and the next goes on behind it.
#[test]
fn what_is_under_way_is_covered_when_a_scan_ends() {
    let Some(gpu) = pocl() else { return };
    let (first, forms) = (Scalar::LAMBDA, [Form::Hash160]);
    let filter = list(&[]);
    let mut scanner = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner");
    let step = scanner.step_keys();
    assert_eq!(scanner.finish().expect("nothing"), (0, Vec::new()));
    let end = 12 * step + 7;
    // The first and the last key of each step.
    let edges = (0..=12).flat_map(|n| [n * step, n * step + 6]).chain((1..=12).map(|n| n * step - 1));
    let planted = expected(edges.map(|offset| plus(first, offset)), &forms);
    let filter = list(&planted);
    for cut in [0, 1, 2, 5] {
        let mut scanner = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner");
        let (mut done, mut found) = (0, Vec::new());
        let mut take = |(keys, survivors): (u64, Vec<Survivor>)| {
            for survivor in &survivors {
                let offset = small(survivor.key.sub(first)).expect("near");
                assert!((done..done + keys).contains(&offset), "a key outside of what was covered");
            }
            done += keys;
            found.extend(survivors);
            keys
        };
        scanner.begin(first, end).expect("begun");
        for _ in 0..cut {
            take(scanner.go_on().expect("covered"));
        }
        let under_way = take(scanner.finish().expect("covered"));
        // The first launches are of one step; how long later ones are depends on the machine.
        assert!(cut > 1 || (under_way > 0) == (cut == 1), "{under_way} keys after {cut} launches");
        assert_eq!(scanner.finish().expect("nothing"), (0, Vec::new()));
        found.extend(run(&mut scanner, plus(first, done), end - done));
        assert_same(&found, &planted);
    }
}

#[test]
fn fuse_filters_let_pass_what_they_hold_and_what_the_crate_lets_pass() {
    let Some(gpu) = pocl() else { return };
    let (first, forms) = (Scalar::LAMBDA, [Form::Hash160, Form::Hash160Uncompressed]);
    let filter = list(&[]);
    let step = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner").step_keys();
    let all = expected((0..2 * step).map(|offset| plus(first, offset)), &forms);
    let mut planted: Vec<u64> = tops(&all[..]).into_iter().step_by(100).collect();
    planted.extend((0..5000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let filters = [(Width::Fuse8, 1, false), (Width::Fuse8, 3, true), (Width::Fuse8, 1, true)];
    let filters = filters.into_iter().chain([(Width::Fuse16, 1, false), (Width::Fuse16, 3, false)]);
    for (width, parts, has_second) in filters {
        let coarse = Filter::of_tops(&planted, width, parts).expect("a filter");
        let second = has_second.then(|| Filter::of_tops(&planted, Width::Fuse16, 2).expect("a filter"));
        let filter = Fuse { first: coarse, second };
        let passing: Vec<Survivor> =
            all.iter().filter(|s| filter.may_hold(s.digest.words()[0])).copied().collect();
        let of_first = all.iter().filter(|s| filter.first.contains_key(s.digest.words()[0])).count();
        assert!(passing.len() >= all.len() / 100);
        assert_eq!(passing.len() < of_first, has_second, "the second lets less pass");
        let filter = ScanFilter::Fuse(Box::new(filter));
        let mut scanner = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner");
        assert_same(&run(&mut scanner, first, 2 * step), &passing);
    }
}

#[test]
fn records_that_make_no_sense_cost_the_device_its_place() {
    let Some(gpu) = pocl() else { return };
    let (forms, filter) = ([Form::X], list(&[]));
    let scanner = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner");
    let half = scanner.shape.spec.group;
    let judge = |record: [u32; RECORD_WORDS]| {
        let landed = Landed::of(vec![record]);
        scanner.sort_out(&landed, 64, Scalar::LAMBDA, 1 << 20).map(|survivors| survivors.len())
    };
    assert_eq!(judge([0, 0, half, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Ok(1));
    // A digest the device left open is computed here, and wanted or not.
    let open = |form: u32| [0, 0, 1 << 22, form, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(judge(open(5)), Ok(0));
    let planted = expected([plus(Scalar::LAMBDA, u64::from(half))].into_iter(), &[Form::Taproot]);
    let (forms, filter) = ([Form::Taproot], list(&planted));
    let asked = RangeScanner::new(&gpu, &forms, &filter).expect("a scanner");
    assert_eq!(asked.sort_out(&Landed::of(vec![open(5)]), 64, Scalar::LAMBDA, 1 << 20), Ok(planted));
    assert!(judge([0, 0, half + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(judge([64, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(judge([0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(judge([0, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(judge([0, 0, abi::CODE_FAULT, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
}

#[test]
fn the_parts_of_a_scan_are_told_apart() {
    let Some(gpu) = pocl() else { return };
    let forms = [Form::Hash160, Form::Account];
    let wanted = list(&expected(std::iter::once(plus(Scalar::ZERO, 77)), &forms));
    let profile = profile(&gpu, &forms, &wanted).expect("measured");
    let names: Vec<&str> = profile.parts.iter().map(|part| part.name).collect();
    assert_eq!(names, ["walk", "compressed keys", "accounts"]);
    assert!(profile.parts[0].picoseconds > 0.0 && profile.launch_ms > 0.0, "{profile:?}");
}
