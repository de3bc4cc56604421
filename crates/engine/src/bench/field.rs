//! The field by itself: multiplications, squarings and inversions a second on a device, their results recomputed.

use std::time::Duration;

use warpsmith_curve::field::chains::Op;

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::worker::measure::FieldRate;

/// How fast a device multiplies in the field of secp256k1.
///
/// See [`bench_field`].
#[derive(Clone, Debug)]
pub struct FieldBench {
    /// The device.
    pub device: String,
    /// `mul`, `sqr` or `inv`.
    pub op: &'static str,
    /// Operations a second.
    pub rate: f64,
    /// Results compared with the processor's portable arithmetic.
    pub verified: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Times multiplication, squaring and inversion on each device.
///
/// ```
/// use warpsmith_engine::{Devices, bench_field};
///
/// let benches = bench_field(&Devices::cpu()?, 0.01)?;
/// assert!(benches.iter().all(|bench| bench.rate > 0.0 && bench.verified > 0));
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub fn bench_field(devices: &Devices, seconds: f64) -> Result<Vec<FieldBench>> {
    let mut lines = Vec::new();
    for device in &devices.list {
        let Some(measured) = device.measure() else { continue };
        for (op, name) in [(Op::Mul, "mul"), (Op::Square, "sqr"), (Op::Invert, "inv")] {
            let FieldRate { rate, verified, seconds } = measured
                .field(op, Duration::from_secs_f64(seconds))
                .map_err(|what| Error::SelfTest { device: device.id(), what })?;
            lines.push(FieldBench { device: device.id(), op: name, rate, verified, seconds });
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd;
    use warpsmith_device::Selector;

    #[test]
    fn every_instruction_set_multiplies_and_proves_it() {
        for simd in simd::available() {
            let devices = Devices::open(&[Selector::Cpu(Some(simd))], Some(1)).expect("available");
            let lines = bench_field(&devices, 0.02).expect("right");
            let ops: Vec<&str> = lines.iter().map(|line| line.op).collect();
            assert_eq!(ops, ["mul", "sqr", "inv"]);
            for line in lines {
                let least = if line.op == "inv" { 1e3 } else { 1e6 };
                assert!(line.rate > least && line.verified >= 4 && line.seconds >= 0.02, "{line:?}");
            }
        }
    }
}
