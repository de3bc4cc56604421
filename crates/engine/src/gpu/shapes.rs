//! Shapes in which a card may run its programs: which are worth trying, and those that were found fastest.
//!
//! The orbit walk has a shape of its own, groups and tables and all, from which every program starts. Of each other [`Kind`] one
//! number is found by itself: the blocks a multiprocessor should hold, which decides the registers of a lane and, for what walks,
//! how many lanes there are. All are kept per device, driver and kernel text: a new driver or a new kernel starts from the
//! default again.

use std::path::PathBuf;
use std::{fmt, fs};

use warpsmith_device::{Device, Vendor, user_cache};
use warpsmith_kernel::digest_filter::DigestTest;
use warpsmith_kernel::points::Digest;
use warpsmith_kernel::salts::Stages;
use warpsmith_kernel::scan::{Forms, ScanPart, ScanTest};
use warpsmith_kernel::{Program, Spec, TablePlace, XTest, abi, join};

use super::{LaunchShape, default_shape};

/// Programs whose blocks are found by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The orbit walk for many prefixes, whose bitmap is in shared memory or not.
    Set { near: bool },
    /// The walk of a search by digests of points, or for taproot the whole of it.
    Walk(Digest),
    /// What makes those digests.
    Test(Digest),
    /// A search over salts.
    Salts { guarded: bool, create: bool },
    /// The walk of a scan.
    ScanWalk { keep_y: bool },
    /// What makes digests of these forms in a scan.
    ScanTest(Forms),
}

impl Kind {
    /// What people call the program.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Walk(Digest::Taproot { .. }) => "walk and hash",
            Kind::Set { near: true } => "walk for hundreds",
            Kind::Set { near: false } => "walk for thousands",
            Kind::Walk(Digest::X) => "walk for other characters",
            Kind::Test(Digest::X) => "test of other characters",
            Kind::Walk(_) | Kind::ScanWalk { .. } => "walk",
            Kind::Test(_) | Kind::Salts { .. } | Kind::ScanTest(_) => "hash",
        }
    }

    /// Numbers of blocks worth trying on a card.
    fn choices(self) -> &'static [u32] {
        match self {
            Kind::Set { .. } => &[2, 3, 4, 5, 6],
            Kind::Walk(_) | Kind::ScanWalk { .. } => &[3, 4, 5, 6, 8],
            Kind::Test(_) | Kind::ScanTest(_) => &[4, 5, 6, 7, 8, 10, 12],
            Kind::Salts { .. } => &[2, 3, 4, 5, 6, 8],
        }
    }

    /// Whether it walks, so that its blocks are also its lanes.
    fn walks(self) -> bool {
        !matches!(self, Kind::Test(_) | Kind::ScanTest(_))
    }

    /// Numbers of blocks worth trying on this device: those that make a difference to its compiler or to the number of lanes.
    pub fn candidates(self, device: &dyn Device) -> Vec<u32> {
        let info = device.info();
        match (info.is_gpu, info.vendor == Vendor::Nvidia || self.walks()) {
            (true, true) => self.choices().to_vec(),
            (false, true) => vec![1, 2],
            (_, false) => Vec::new(),
        }
    }

    /// Some program of this kind: its text changes when theirs does.
    fn spec(self, base: &Spec) -> Spec {
        match self {
            Kind::Set { near } => Spec { filter: XTest::Set { near }, ..*base },
            kind => Spec { program: kind.program(), ..*base },
        }
    }

    /// The same, but for the filter that sets have.
    fn program(self) -> Program {
        let top = DigestTest { ranges: 1, ..DigestTest::default() };
        let filter = ScanTest::Top(top);
        match self {
            Kind::Walk(digest @ Digest::Taproot { .. }) | Kind::Test(digest) => {
                Program::Points { digest, filter: top }
            }
            Kind::Walk(digest) => Program::PointsWalk { digest },
            Kind::Set { .. } => Program::Orbit,
            Kind::Salts { guarded, create } => {
                Program::Salts { stages: Stages { guarded, create, byte: 0 }, filter: top }
            }
            Kind::ScanWalk { keep_y } => Program::Scan(ScanPart::Walk { keep_y }),
            Kind::ScanTest(forms) => Program::Scan(ScanPart::Test { forms, filter, keep_y: forms.need_y() }),
        }
    }
}

/// The shapes of the orbit walk worth trying: around the default, one change at a time and the pairs that interact.
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

/// What is known of a device in the name of a file: everything that could change the answer, the text of the program too.
fn path(device: &dyn Device, spec: &Spec, ending: &str) -> Option<PathBuf> {
    let info = device.info();
    let (kernel, api) = (join(spec).hash, info.api);
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
    };
    let name = format!("{api}-{}-{}-{kernel:032x}.{ending}", plain(&info.name), plain(&info.driver));
    Some(user_cache()?.join(name))
}

/// Where the shape of the orbit walk is remembered.
fn shape_path(device: &dyn Device) -> Option<PathBuf> {
    let ptx = device.info().vendor == Vendor::Nvidia;
    path(device, &Spec { ptx, ..Spec::default() }, "shape")
}

/// Where the blocks of a kind are: another shape of the orbit walk has another file.
fn blocks_path(device: &dyn Device, base: &LaunchShape, kind: Kind) -> Option<PathBuf> {
    path(device, &kind.spec(&base.spec), "blocks")
}

/// Writes it down. A folder that cannot be written costs the memory of this run, nothing else.
fn keep(path: Option<PathBuf>, text: &str) {
    if let Some(path) = path {
        let _ = path.parent().map(fs::create_dir_all);
        let _ = fs::write(path, format!("{text}\n"));
    }
}

/// Remembers the shape of the orbit walk for a device.
pub(crate) fn remember(device: &dyn Device, shape: &LaunchShape) {
    keep(shape_path(device), &shape.to_string());
}

/// Remembers the blocks of a kind.
pub(crate) fn remember_blocks(device: &dyn Device, base: &LaunchShape, kind: Kind, blocks: u32) {
    keep(blocks_path(device, base, kind), &blocks_text(blocks));
}

/// The remembered shape of a device, if there is a sound one.
pub(crate) fn remembered(device: &dyn Device) -> Option<LaunchShape> {
    let text = fs::read_to_string(shape_path(device)?).ok()?;
    let shape = read(&text, default_shape(device).spec)?;
    // Only what `tune` would try itself: a file from elsewhere cannot ask for something absurd.
    candidates(device).contains(&shape).then_some(shape)
}

/// The remembered blocks of a kind, in the same way.
pub(crate) fn remembered_blocks(device: &dyn Device, base: &LaunchShape, kind: Kind) -> Option<u32> {
    let text = fs::read_to_string(blocks_path(device, base, kind)?).ok()?;
    let blocks = read_blocks(&text)?;
    kind.candidates(device).contains(&blocks).then_some(blocks)
}

/// Blocks as they are remembered.
pub(crate) fn blocks_text(blocks: u32) -> String {
    format!("blocks={blocks}")
}

fn read_blocks(text: &str) -> Option<u32> {
    text.trim_end().strip_prefix("blocks=")?.parse().ok()
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
        assert_eq!(read_blocks(&blocks_text(6)), Some(6));
        for bad in ["", "6", "blocks=", "blocks=x", "blocks=-1", "blocks=6 7"] {
            assert_eq!(read_blocks(bad), None, "{bad}");
        }
    }
}
