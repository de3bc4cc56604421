//! What does not depend on the walk: the field, how programs are built, what a release must carry.

use std::collections::HashSet;

use warpsmith_device::{Error, Info};
use warpsmith_kernel::shipped;

use super::*;

/// The OpenCL processor of this machine.
pub fn pocl() -> Option<Gpu> {
    let device = warpsmith_device::survey().devices.into_iter().find(|d| !d.info().is_gpu);
    if device.is_none() {
        println!("SKIPPED: no OpenCL on the processor (pocl-opencl-icd): the kernels were not run");
    }
    device.map(|device| Gpu::new(device, Inline::Auto))
}

#[test]
fn the_field_is_timed_and_its_values_recomputed() {
    let device = warpsmith_device::survey().devices.into_iter().find(|d| !d.info().is_gpu);
    let Some(device) = device else {
        return println!("SKIPPED: no OpenCL on the processor (pocl-opencl-icd): the field was not timed");
    };
    for (op, inline) in [(Op::Mul, Inline::Yes), (Op::Square, Inline::Yes), (Op::Square, Inline::No)] {
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

#[test]
fn releases_ship_what_an_untuned_card_runs() {
    let card = card(Vendor::Nvidia, Api::Cuda);
    let shipped: HashSet<u128> = shipped().iter().map(|source| source.hash).collect();
    for spec in orbit::programs(&default_layout(&card).spec) {
        assert!(shipped.contains(&join(&spec).hash), "{spec:?} is not shipped");
    }
}

#[test]
fn without_a_compiler_only_what_is_shipped_is_taken_on() {
    let gpu = Gpu::new(Arc::new(card(Vendor::Nvidia, Api::Cuda)), Inline::Auto);
    let filter = warpsmith_pattern::Filter::default();
    let supports = |recipe| gpu.supports(&Search { recipe: &recipe, filter: &filter });
    assert_eq!(supports(Recipe::X), Ok(()));
    let why = supports(Recipe::Account).unwrap_err();
    assert!(why.contains("NVRTC") && why.contains("--device opencl"), "{why}");
}

#[test]
fn inlining_follows_the_vendor_unless_it_is_asked_for() {
    for (vendor, auto) in [(Vendor::Amd, false), (Vendor::Nvidia, true), (Vendor::Intel, true)] {
        let built = |inline| Gpu::new(Arc::new(card(vendor.clone(), Api::OpenCl)), inline).layout.spec.inline;
        assert_eq!([Inline::Auto, Inline::Yes, Inline::No].map(built), [auto, true, false], "{vendor}");
    }
    let amd = Gpu::new(Arc::new(card(Vendor::Amd, Api::OpenCl)), Inline::Auto);
    assert!(amd.describe().contains("out of line") && amd.describe().contains("--inline yes"));
}
