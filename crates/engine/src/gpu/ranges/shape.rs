//! The shape of a scan on a card: how many lanes walk, how many records there is room for, and which programs test.

use warpsmith_chain::Form;
use warpsmith_kernel::scan as text;
use warpsmith_kernel::{Program, Spec};

use crate::forms;
use crate::gpu::shapes::Kind;
use crate::gpu::{Gpu, LaunchShape};

/// How many times as many lanes as a card holds at once have a group each: while some blocks wait for their one inversion,
/// others walk. H200: 1, 2, 3, 4 and 8 times as many walk at 51.3, 49.9, 48.6, 48.2 and 47.5 ps a key.
const WAVES: u32 = 4;

/// What a launch has room for.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Records.
    pub capacity: u32,
    /// How many of them a key is expected to take, in all its forms.
    pub share: f64,
}

impl Room {
    /// Keys that are expected to fill half of it.
    pub fn keys(self) -> f64 {
        f64::from(self.capacity / 2) / self.share
    }
}

/// The shape of the walk: [`WAVES`], or as many as leave room for a step's points and records.
pub(super) fn shape(gpu: &Gpu, keep_y: bool, room: Room) -> LaunchShape {
    let LaunchShape { spec, lanes } = walk_shape(gpu, keep_y);
    let info = gpu.device.info();
    let spec = Spec { program: Program::Scan(text::ScanPart::Walk { keep_y }), ..spec };
    let most = (info.memory / 8).min(info.largest_buffer) / text::points_bytes(spec.group, keep_y);
    let recorded = room.keys() / (2.0 * f64::from(spec.group) + 1.0);
    let waves =
        (most / u64::from(lanes)).min((recorded / f64::from(lanes)) as u64).clamp(1, u64::from(WAVES));
    let lanes = (u64::from(lanes) * waves).min(most) as u32;
    LaunchShape { spec, lanes: (lanes / spec.block * spec.block).max(spec.block) }
}

/// The shape of a wave of the walk.
fn walk_shape(gpu: &Gpu, keep_y: bool) -> LaunchShape {
    gpu.shape.with_blocks(gpu.blocks(Kind::ScanWalk { keep_y }, gpu.shape.spec.blocks))
}

/// The most lanes a scan has on this device, whatever it looks for.
pub(in crate::gpu) fn most_lanes(gpu: &Gpu) -> u32 {
    let lanes = [false, true].map(|keep_y| walk_shape(gpu, keep_y).lanes);
    WAVES * lanes.into_iter().fold(1, u32::max)
}

/// What is tuned of a scan for these.
pub(in crate::gpu) fn kinds(forms: &[Form]) -> Vec<Kind> {
    let Ok(made) = forms::scanned(forms) else { return Vec::new() };
    let keep_y = text::Forms::of(&made).need_y();
    let tests = together(&made).into_iter().map(|forms| Kind::ScanTest(text::Forms::of(&forms)));
    std::iter::once(Kind::ScanWalk { keep_y }).chain(tests).collect()
}

/// Which forms one program tests: those that share a hash. Taproot has its own.
pub(super) fn together(forms: &[text::Form]) -> Vec<Vec<text::Form>> {
    let shares = |form: &text::Form| matches!(form, text::Form::Compressed | text::Form::Script);
    let tested = forms.iter().copied().filter(|form| *form != text::Form::Taproot);
    let (pair, alone): (Vec<text::Form>, Vec<text::Form>) = tested.partition(shares);
    let pair = (!pair.is_empty()).then_some(pair);
    pair.into_iter().chain(alone.into_iter().map(|form| vec![form])).collect()
}
