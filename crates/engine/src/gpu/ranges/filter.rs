//! What keys are compared with, in a card's memory.

use warpsmith_chain::Form;
use warpsmith_device::{Buffer, Error as DeviceError, Info, Queue};
use warpsmith_kernel::digest_filter;
use warpsmith_kernel::scan as text;
use warpsmith_store::{Filter, FilterPart, Fingerprints};

use super::shape::Room;
use crate::gpu::{Outcome, as_bytes, upload};
use crate::prefilter::ScanFilter;

/// Records a launch has room for where few keys pass, and where one of 65,536 or of 256 does.
const FEW: u32 = 1 << 12;
const MANY: u32 = 1 << 17;
const FLOOD: u32 = 1 << 20;

/// Puts a filter where programs look for it: how they test it, where it is, and what it leaves.
pub(super) fn place(
    queue: &mut dyn Queue,
    info: &Info,
    wanted: &ScanFilter,
    forms: &[Form],
) -> Outcome<(text::ScanTest, Buffer, Room)> {
    Ok(match wanted {
        ScanFilter::List(few) => {
            let intervals: Vec<(u64, u64)> = few.tops().iter().map(|top| (*top, *top)).collect();
            let (shape, words) = digest_filter::build_set(&intervals);
            let words = upload(queue, &words)?;
            (text::ScanTest::Top(shape), words, Room { capacity: FEW, share: 0.0 })
        }
        ScanFilter::Open => unreachable!("refused where scanners are asked for"),
        ScanFilter::Fuse(filter) => {
            let filter = &filter.first;
            let width = filter.width();
            let capacity = if width.bits() == 8 { FLOOD } else { MANY };
            let words = upload_fuse(queue, &info.id, filter)?;
            let room = Room { capacity, share: width.false_share() * forms.len() as f64 };
            (text::ScanTest::Fuse { bits: width.bits(), many: filter.parts().len() > 1 }, words, room)
        }
    })
}

/// A fuse filter in the device's memory.
fn upload_fuse(queue: &mut dyn Queue, device: &str, filter: &Filter) -> Outcome<Buffer> {
    let too_large =
        || DeviceError::Memory { device: device.to_owned(), asked: filter.size(), free: Some(1 << 34) };
    let each = 32 / u64::from(filter.width().bits());
    let parts = filter.parts().iter().map(|part| {
        // Kernels count words of the filter by 32 bits: 16 GiB.
        let first = u32::try_from(part.first / each).map_err(|_| too_large())?;
        let FilterPart { seed, segment_length, segment_count_length, .. } = *part;
        Ok(text::FusePart { first, seed, segment_length, segment_count_length })
    });
    let head = as_bytes(&text::fuse_words(&parts.collect::<Outcome<Vec<_>>>()?));
    let buffer = queue.alloc((head.len() as u64 + filter.size()).next_multiple_of(4))?;
    queue.write(buffer, 0, &head)?;
    let at = head.len() as u64;
    match filter.fingerprints() {
        Fingerprints::Bytes(bytes) => queue.write(buffer, at, bytes)?,
        Fingerprints::Words(words) => {
            for (n, piece) in words.chunks(1 << 20).enumerate() {
                let bytes: Vec<u8> = piece.iter().flat_map(|word| word.to_le_bytes()).collect();
                queue.write(buffer, at + ((n as u64) << 21), &bytes)?;
            }
        }
    }
    Ok(buffer)
}
