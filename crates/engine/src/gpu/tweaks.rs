//! The table by which a card multiplies G for taproot: a few multiples from the host, the rest by the card itself.

use warpsmith_curve::Affine;
use warpsmith_device::{Arg, Buffer, Info, Program, Queue};
use warpsmith_kernel::{points, taproot};

use super::{Outcome, as_bytes, limbs, upload};
use crate::worker::batch_add::multiples;

/// Bits of a digit, the most first: each the least for its number of digits, 11, 12, 13, 15 and 17.
/// H200: 24, 22 and 20 bits run at 0.717, 0.665 and 0.619 G/s.
const WIDTHS: [u32; 5] = [24, 22, 20, 18, 16];

/// For processors, where the table is for tests.
const FEW: u32 = 8;

/// The widest digits whose table takes a twelfth of the memory or less: 5.5 GiB for 24 bits, 1.5 for 22, 64 MiB for 16.
pub(super) fn bits(info: &Info) -> u32 {
    let room = (info.memory / 12).min(info.largest_buffer);
    let fits = |bits: &u32| info.is_gpu && bytes(*bits) <= room;
    WIDTHS.into_iter().find(fits).unwrap_or(FEW)
}

fn bytes(bits: u32) -> u64 {
    4 * taproot::ENTRY_WORDS as u64 * taproot::entries(bits)
}

/// The table, filled by the program's own entry point.
pub(super) fn table(queue: &mut dyn Queue, program: Program, block: u32, bits: u32) -> Outcome<Buffer> {
    let table = queue.alloc(bytes(bits))?;
    let small = taproot::small_bits(bits);
    let words = |points: &[Affine]| -> Vec<u32> {
        points.iter().flat_map(|point| points::entry(&limbs(point.x), &limbs(point.y))).collect()
    };
    let mut giants = Vec::new();
    let mut unit = Affine::G;
    for window in 0..taproot::windows(bits) {
        let known = multiples(unit, (1 << small) - 1);
        let at = bytes(bits) / u64::from(taproot::windows(bits)) * u64::from(window);
        queue.write(table, at, &as_bytes(&words(&known)))?;
        let giant = (0..small).fold(unit, |point, _| point.double());
        giants.extend(words(&multiples(giant, taproot::giants(bits) as usize)));
        unit = (0..bits).fold(unit, |point, _| point.double());
    }
    let tasks = taproot::windows(bits) * taproot::giants(bits);
    let giants = upload(queue, &giants)?;
    let fill = queue.kernel(program, taproot::FILL)?;
    let args = [Arg::Buffer(table), Arg::Buffer(giants), Arg::U32(small), Arg::U32(tasks)];
    queue.launch(fill, tasks.div_ceil(block), block, &args)?;
    Ok(table)
}
