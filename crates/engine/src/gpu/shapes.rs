//! Shapes in which a card may search: which are worth trying, and the one that was found fastest.
//!
//! A shape is kept per device, driver and kernel text: a new driver or a new kernel starts from the default again.

use std::path::PathBuf;
use std::{fmt, fs};

use warpsmith_device::{Device, Vendor, user_cache};
use warpsmith_kernel::{Spec, TablePlace, abi, join};

use super::{LaunchShape, default_shape};

/// The shapes worth trying: around the default, one change at a time and the pairs that interact.
pub(crate) fn candidates(device: &dyn Device) -> Vec<LaunchShape> {
    let base = default_shape(device);
    let info = device.info();
    let mut out = vec![base];
    let mut add = |spec: Spec| {
        let lanes = info.units * spec.blocks * spec.block;
        let fits = 4 * abi::scratch_words(spec.group, lanes) as u64 <= info.memory / 2;
        let table = 4 * abi::table_words(spec.group) as u64;
        let shape = LaunchShape { spec, lanes };
        if fits
            && (spec.table == TablePlace::Global || table <= info.constant_memory)
            && !out.contains(&shape)
        {
            out.push(shape);
        }
    };
    if info.is_gpu {
        for blocks in [3, 4, 5, 6] {
            add(Spec { blocks, ..base.spec });
            add(Spec { blocks, group: 1024, table: TablePlace::Global, ..base.spec });
        }
        add(Spec { unroll_signs: true, ..base.spec });
        add(Spec { unroll_signs: true, blocks: 4, ..base.spec });
        add(Spec { blocks: 2 * base.spec.blocks, block: 64, ..base.spec });
        add(Spec { count_carries: !base.spec.count_carries, ..base.spec });
        add(Spec { table: TablePlace::Global, ..base.spec });
        add(Spec { group: 128, ..base.spec });
    }
    out
}

/// What is known of a device in the shape's file name: everything that could change the answer.
fn path(device: &dyn Device) -> Option<PathBuf> {
    let info = device.info();
    let kernel = join(&Spec { ptx: info.vendor == Vendor::Nvidia, ..Spec::default() }).hash;
    let api = info.api;
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
    };
    let name = format!("{api}-{}-{}-{kernel:032x}.shape", plain(&info.name), plain(&info.driver));
    Some(user_cache()?.join(name))
}

/// Remembers a shape for a device. A folder that cannot be written costs the memory of this run, nothing else.
pub(crate) fn remember(device: &dyn Device, shape: &LaunchShape) {
    if let Some(path) = path(device) {
        let _ = path.parent().map(fs::create_dir_all);
        let _ = fs::write(path, format!("{shape}\n"));
    }
}

/// The remembered shape of a device, if there is a sound one.
pub(crate) fn remembered(device: &dyn Device) -> Option<LaunchShape> {
    let text = fs::read_to_string(path(device)?).ok()?;
    let shape = read(&text, default_shape(device).spec)?;
    // Only what `tune` would try itself: a file from elsewhere cannot ask for something absurd.
    candidates(device).contains(&shape).then_some(shape)
}

/// As it is remembered.
impl fmt::Display for LaunchShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaunchShape { spec, lanes } = self;
        write!(
            f,
            "group={} block={} blocks={} constant={} counted={} unrolled={} lanes={lanes}",
            spec.group,
            spec.block,
            spec.blocks,
            u32::from(spec.table == TablePlace::Constant),
            u32::from(spec.count_carries),
            u32::from(spec.unroll_signs)
        )
    }
}

/// What was remembered.
fn read(text: &str, base: Spec) -> Option<LaunchShape> {
    let mut shape = LaunchShape { spec: base, lanes: 0 };
    for part in text.split_whitespace() {
        let (name, value) = part.split_once('=')?;
        let value: u32 = value.parse().ok()?;
        match name {
            "group" => shape.spec.group = value,
            "block" => shape.spec.block = value,
            "blocks" => shape.spec.blocks = value,
            "constant" => {
                shape.spec.table = if value == 1 { TablePlace::Constant } else { TablePlace::Global }
            }
            "counted" => shape.spec.count_carries = value == 1,
            "unrolled" => shape.spec.unroll_signs = value == 1,
            "lanes" => shape.lanes = value,
            _ => return None,
        }
    }
    (shape.lanes > 0).then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_reads_as_it_was_written_and_nonsense_does_not() {
        let base = Spec::default();
        let shape = LaunchShape { spec: Spec { group: 128, unroll_signs: true, ..base }, lanes: 4096 };
        assert_eq!(read(&shape.to_string(), base), Some(shape));
        for bad in ["", "group=256", "group=x lanes=5", "cows=1 lanes=5", "lanes=-1", "lanes"] {
            assert_eq!(read(bad, base), None, "{bad}");
        }
    }
}
