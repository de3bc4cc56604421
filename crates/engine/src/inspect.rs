//! What drivers tell of their devices, and what their compilers say of the search: for people who look for the cause of something.

use std::sync::Arc;
use std::time::Instant;

use warpsmith_device::Device;

use crate::gpu;
use crate::simd;

/// A device, and all that is known of it.
///
/// See [`inspect`](inspect()).
#[derive(Clone, Debug)]
pub struct Inspection {
    /// As `--device` names it.
    pub id: String,
    /// What the driver tells, by name.
    pub facts: Vec<(&'static str, String)>,
    /// What came of compiling the usual search; none for the processor, whose search comes compiled.
    pub compiled: Option<Compiled>,
}

/// What came of compiling.
///
/// See [`inspect`](inspect()).
#[derive(Clone, Debug)]
pub struct Compiled {
    /// How long it took.
    pub seconds: f64,
    /// What the compiler said, or why there is no program.
    pub log: std::result::Result<String, String>,
}

/// Asks every driver, and has every compiler compile the usual search anew.
///
/// ```
/// use warpsmith_engine::inspect;
///
/// let all = inspect();
/// assert!(all.iter().any(|device| device.id == "cpu" && device.compiled.is_none()));
/// ```
pub fn inspect() -> Vec<Inspection> {
    let cards = warpsmith_device::survey().devices;
    let mut all: Vec<Inspection> = cards.iter().map(card).collect();
    let sets: Vec<String> = simd::available().map(|set| set.to_string()).collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let facts = vec![
        ("instruction_sets", sets.join(", ")),
        ("used", simd::detect().to_string()),
        ("threads", threads.to_string()),
    ];
    all.push(Inspection { id: "cpu".to_owned(), facts, compiled: None });
    all
}

fn card(device: &Arc<dyn Device>) -> Inspection {
    let info = device.info();
    let told = |text: &Option<String>| text.clone().unwrap_or_else(|| "not told".to_owned());
    let mut facts = vec![
        ("name", info.name.clone()),
        ("maker", info.vendor.to_string()),
        ("interface", info.api.to_string()),
        ("driver", info.driver.clone()),
        ("architecture", info.arch.clone()),
        ("units", info.units.to_string()),
        ("threads_per_unit", told(&info.threads_per_unit.map(|threads| threads.to_string()))),
        ("memory_bytes", info.memory.to_string()),
        ("largest_buffer_bytes", info.largest_buffer.to_string()),
        ("constant_memory_bytes", info.constant_memory.to_string()),
        ("shared_memory_bytes", info.shared_memory.to_string()),
        ("identity", told(&info.identity)),
        ("is_gpu", info.is_gpu.to_string()),
    ];
    facts.extend(info.same_as.iter().map(|twin| ("same_as", twin.clone())));
    let started = Instant::now();
    let log = device
        .can_build()
        .map_err(|error| error.to_string())
        .and_then(|()| gpu::compile_anew(device.as_ref()));
    let compiled = Some(Compiled { seconds: started.elapsed().as_secs_f64(), log });
    Inspection { id: info.id.clone(), facts, compiled }
}
