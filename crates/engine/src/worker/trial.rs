//! What the tests of all walks share: lanes whose origins are known, the key of a place, and lanes that begin anew.

use warpsmith_chain::KeyTarget;
use warpsmith_curve::walk::Place;
use warpsmith_curve::{Affine, Scalar};

use super::{Start, Worker};
use crate::origin::{Recovered, Secret, public_point};
use crate::origins::{Maker, Origins};
use crate::worker::{Hit, Spot};

/// A small number as a key.
pub(crate) fn small(number: u64) -> Secret {
    Secret::from_bytes(&Scalar::from_u64(number).to_be_bytes()).expect("a key")
}

/// Origins of so many lanes and where they begin; the first is this one, if one is given.
pub(crate) fn starts(lanes: u32, first: Option<Secret>) -> (Origins, Vec<Affine>) {
    let mut secrets = Secret::random_many(lanes as usize).expect("random");
    if let Some(first) = first {
        secrets[0] = first;
    }
    let origins = Origins::known(secrets);
    let point = |lane| origins.of(lane).and_then(|origin| origin.point()).expect("not infinity");
    let points = (0..lanes).map(point).collect();
    (origins, points)
}

/// The place of a key that was hit.
pub(crate) fn place(hit: &Hit) -> Place {
    let Spot::Key(place) = hit.spot else { panic!("{hit:?} is no key") };
    place
}

/// The key of a place.
pub(crate) fn key_at(origins: &Origins, place: &Place, half: u32) -> Secret {
    let origin = origins.of(place.lane).expect("a lane");
    match origin.recover(place.offset(half), place.image, place.negate) {
        Some(Recovered::Key(key)) => key,
        _ => panic!("{place:?}"),
    }
}

/// Lanes of which a key was hit begin anew, time and again, while launches are under way: whatever is told afterwards is a key of
/// the new walk, the lanes are where they must be, and as much was tried as the first hits of all walks and the odds say.
/// `run` has the worker run.
pub(crate) fn assert_lanes_begin_anew<W: Worker + ?Sized>(
    worker: &mut W,
    target: &dyn KeyTarget,
    (start, odds): (&str, f64),
    mut run: impl FnMut(&mut W) -> super::Batch,
) {
    let numbering = worker.numbering().expect("a walk");
    let maker = Maker::new(None);
    let (mut origins, points) = starts(numbering.lanes, None);
    worker.start(Start::Points(&points)).expect("started");
    let (mut tried, mut ended, mut later, mut stale) = (0, 0, 0, 0);
    // Sixty runs at least: where lanes match rarely, as many as it takes.
    for runs in 0.. {
        if runs >= 60 && ended >= 100 {
            break;
        }
        let batch = run(worker);
        tried += batch.tried;
        stale += batch.stale;
        let mut hits: Vec<Place> = batch.hits.iter().map(place).collect();
        hits.sort_unstable();
        for (n, hit) in hits.iter().enumerate() {
            let text = |hit| {
                let key = key_at(&origins, hit, numbering.half).public_key();
                target.encode(&target.digest(&public_point(&key)))
            };
            if n % 11 == 0 {
                assert!(text(hit).starts_with(start), "{hit:?} is {}", text(hit));
            }
        }
        for walk in hits.chunk_by(|a, b| a.lane == b.lane) {
            let Place { lane, step, .. } = walk[0];
            let met = walk.iter().filter(|hit| hit.step == step).count() as u64;
            let spare = maker.make(1).expect("random").pop().expect("one");
            let point = spare.point;
            origins.retire(lane, spare).expect("a lane");
            let not_tried = worker.replace(lane, step, met, point);
            assert!(not_tried <= tried);
            tried -= not_tried;
            ended += 1;
            later += u64::from(step > 0);
        }
        worker.check().expect("every lane is where it must be");
    }
    // Where a step holds hits in plenty, every walk ends with its first.
    let rare = numbering.keys_of_lane() as f64 * odds < 1.0;
    assert!(!rare || later > 10, "{ended} walks ended, {later} not at once, {stale} hits were stale");
    let expected = tried as f64 * odds;
    assert!(
        (ended as f64 - expected).abs() < 6.0 * expected.sqrt(),
        "{ended} walks ended where {expected:.0} were to"
    );
}
