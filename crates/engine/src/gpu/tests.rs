//! What does not depend on the walk: the field, how programs are built, what a release must carry.

use std::collections::HashSet;

use warpsmith_curve::walk::Place;
use warpsmith_device::{Error, Info};
use warpsmith_kernel::shipped;

use super::*;
use crate::origin::public_point;
use crate::worker::trial::{key_at, place, starts};
use crate::worker::{Batch, Start};

/// The OpenCL processor of this machine.
pub fn pocl() -> Option<Gpu> {
    let device = warpsmith_device::survey().devices.into_iter().find(|d| !d.info().is_gpu);
    if device.is_none() {
        println!("SKIPPED: no OpenCL on the processor (pocl-opencl-icd): the kernels were not run");
    }
    device.map(|device| Gpu::new(device, Inline::Auto))
}

/// A batch of more hits than a launch has room for: each once, and as many as the odds lead one to expect.
pub fn assert_flood(batch: &Batch, odds: f64) {
    assert!(batch.hits.len() > CAPACITY as usize, "{}", batch.hits.len());
    let expected = batch.tried as f64 * odds;
    let off = (batch.hits.len() as f64 - expected).abs();
    assert!(off < 6.0 * expected.sqrt(), "{} hits of {} keys", batch.hits.len(), batch.tried);
    let places: HashSet<Place> = batch.hits.iter().map(place).collect();
    assert_eq!(places.len(), batch.hits.len(), "each once");
}

/// Launches with a flipped bit in one centre, some tens of times from fresh origins: each is found within a few launches, and
/// nothing before that. `short` keeps launches short.
pub fn assert_faults_are_found<W: Worker>(worker: &mut W, short: fn(&mut W)) {
    let lanes = worker.numbering().expect("a walk").lanes;
    let random = |below: u32| {
        let mut bytes = [0; 4];
        warpsmith_entropy::fill(&mut bytes).expect("random");
        u32::from_le_bytes(bytes) % below
    };
    let mut confirmed = 0;
    for fault in 0..40 {
        worker.start(Start::Points(&starts(lanes, None).1)).expect("started");
        let mut run = || {
            short(worker);
            let tried = worker.run().map(|batch| batch.tried);
            (tried, worker.unproved())
        };
        // An honest walk, checked every other launch once the first fault has set that.
        let mut before = 0;
        for _ in 0..5 {
            let (tried, unproved) = run();
            let tried = tried.expect("honest");
            confirmed += u32::from(unproved < before + tried && fault > 0);
            before = unproved;
        }
        let (lane, bit) = (random(lanes), random(512));
        worker.flip(lane, bit, 2);
        let told = (0..8).find_map(|_| {
            short(worker);
            worker.run().err()
        });
        let told = told.unwrap_or_else(|| panic!("bit {bit} of lane {lane} was flipped, and nobody noticed"));
        assert!(told.contains(&format!("1 of {lanes} lanes")), "{told}");
    }
    assert!(confirmed > 39, "checks that find all right confirm what was tried: {confirmed}");
}

#[test]
fn the_field_is_timed_and_its_values_recomputed() {
    let device = warpsmith_device::survey().devices.into_iter().find(|d| !d.info().is_gpu);
    let Some(device) = device else {
        return println!("SKIPPED: no OpenCL on the processor (pocl-opencl-icd): the field was not timed");
    };
    for (op, inline) in [
        (Op::Mul, Inline::Yes),
        (Op::Square, Inline::Yes),
        (Op::Square, Inline::No),
        (Op::Invert, Inline::Yes),
    ] {
        let gpu = Gpu::new(Arc::clone(&device), inline);
        let rate = gpu.field(op, Duration::from_millis(20)).expect("right");
        assert!(rate.rate > 1e3 && rate.verified > 4096 + 32 && rate.seconds >= 0.02, "{rate:?}");
    }
}

/// A card that is only described.
struct Card(Info);

impl Device for Card {
    fn info(&self) -> &Info {
        &self.0
    }
    fn queue(&self) -> Outcome<Box<dyn Queue>> {
        panic!("nobody opens it")
    }
    fn can_build(&self) -> Outcome<()> {
        Err(Error::Library { name: "nvrtc", reason: "it is not here".to_owned() })
    }
}

fn card(vendor: Vendor, api: Api) -> Card {
    Card(Info {
        id: format!("{api}:0"),
        api,
        name: "a card".to_owned(),
        vendor,
        driver: "1".to_owned(),
        arch: "sm_90".to_owned(),
        units: 10,
        threads_per_unit: None,
        memory: 8 << 30,
        largest_buffer: 8 << 30,
        constant_memory: 65536,
        shared_memory: 49152,
        identity: None,
        same_as: None,
        is_gpu: true,
    })
}

/// A card of which nothing but its description is needed.
pub fn described() -> Gpu {
    Gpu::new(Arc::new(card(Vendor::Nvidia, Api::Cuda)), Inline::Auto)
}

#[test]
fn releases_ship_what_an_untuned_card_runs() {
    let card = card(Vendor::Nvidia, Api::Cuda);
    let shipped: HashSet<u128> = shipped().iter().map(|source| source.hash).collect();
    for spec in orbit::programs(&default_shape(&card).spec) {
        assert!(shipped.contains(&join(&spec).hash), "{spec:?} is not shipped");
    }
    assert!(
        shipped.contains(&warpsmith_kernel::moves::join().hash),
        "what puts lanes elsewhere is not shipped"
    );
}

#[test]
fn without_a_compiler_only_what_is_shipped_is_taken_on() {
    let gpu = Gpu::new(Arc::new(card(Vendor::Nvidia, Api::Cuda)), Inline::Auto);
    let filter = warpsmith_pattern::Filter::default();
    let supports = |recipe| gpu.supports(&Search::new(&recipe, &filter));
    assert_eq!(supports(Recipe::Key(Form::X)), Ok(()));
    let why = supports(Recipe::Key(Form::Account)).unwrap_err();
    assert!(why.contains("NVRTC") && why.contains("the device opencl"), "{why}");
}

#[test]
fn inlining_follows_the_vendor_unless_it_is_asked_for() {
    for (vendor, auto) in [(Vendor::Amd, false), (Vendor::Nvidia, true), (Vendor::Intel, true)] {
        let built = |inline| Gpu::new(Arc::new(card(vendor.clone(), Api::OpenCl)), inline).shape.spec.inline;
        assert_eq!([Inline::Auto, Inline::Yes, Inline::No].map(built), [auto, true, false], "{vendor}");
    }
    let amd = Gpu::new(Arc::new(card(Vendor::Amd, Api::OpenCl)), Inline::Auto);
    assert!(amd.describe().contains("out of line") && amd.describe().contains("inlined"));
}

#[test]
fn keys_of_hits_are_computed_exactly_wherever_they_lie() {
    let Some(gpu) = pocl() else { return };
    let LaunchShape { spec, lanes } = gpu.shape;
    let (origins, points) = starts(lanes, None);
    let mut places = Vec::new();
    // Before, at and after the end of the prepared strides, and far behind it.
    for (n, step) in [0, 1, 254, 255, 256, 257, 511, 512, 100_000].into_iter().enumerate() {
        for lane in [0, 1, lanes - 1] {
            for index in [0, 1, spec.group] {
                let (orbit, image) =
                    if index == 0 { (0, n as u8 % 3) } else { (n as u8 % 3, lane as u8 % 3) };
                let minus = index > 0 && n % 2 == 1;
                places.push(Place { lane, step, index, minus, orbit, image, negate: false });
            }
        }
    }
    let mut at = lanes::Lanes::new(&gpu);
    at.begin(&points);
    // One of the lanes began a while ago, and what is asked of it is of that walk.
    at.advance(1000);
    at.replace(1, points[1]);
    let asked: Vec<Place> =
        places.iter().map(|p| Place { step: p.step + if p.lane == 1 { 1000 } else { 0 }, ..*p }).collect();
    let found = at.keys_at(&asked);
    assert_eq!(found.len(), places.len());
    for (place, found) in places.iter().zip(found) {
        let key = key_at(&origins, place, spec.group);
        let (found, expected) = (found.expect("not infinity"), public_point(&key.public_key()));
        assert_eq!((found.x.to_be_bytes(), found.y.to_be_bytes()), (expected.x, expected.y), "{place:?}");
    }
    assert!(at.keys_at(&[]).is_empty());
}
