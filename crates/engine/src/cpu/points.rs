//! The walk over points on the processor: for targets whose digest is a hash of the point.
//!
//! A compressed key is x and the parity of y. Both parities of each x are hashed, so y is never formed; which of a point
//! and its opposite a digest belongs to is found out for the hits alone.

use warpsmith_chain::{Form, Reads};
use warpsmith_curve::Affine;
use warpsmith_curve::group::Point;
use warpsmith_curve::walk::{Block, Points, Walk};
use warpsmith_hash::{Lanes, hash160, keccak};

use super::Cpu;
use super::create::Create;
use super::digest_filter::DigestFilter;
use super::walker::Quest;
use crate::worker::batch_add::add_pairs;
use crate::worker::{Batch, Hit, Search, Spot};

/// A search for hashes of points.
pub(super) struct Hashes {
    lanes: Lanes,
    form: Form,
    /// What an account creates, for [`Form::Contract`].
    create: Option<Create>,
    filter: DigestFilter,
}

impl Hashes {
    /// Looks for digests of the search's recipe; none if they are no hashes of points.
    pub fn new(cpu: &Cpu, search: &Search<'_>) -> Option<Self> {
        let form = search.recipe.form()?;
        let create = match form {
            Form::X | Form::Taproot => return None,
            Form::Contract { nonce } => Some(Create::new(nonce)),
            Form::Account | Form::Hash160 | Form::Hash160Uncompressed | Form::ScriptHash160 => None,
        };
        let filter = DigestFilter::new(search.prefilter.sought().clone(), cpu.simd);
        Some(Hashes { lanes: Lanes::new(cpu.simd), form, create, filter })
    }
}

impl Quest for Hashes {
    const RELATIVES: (u8, bool) = (1, true);

    fn step(&mut self, cpu: &Cpu, walk: &mut Walk<'_>) -> Batch {
        let mut hits = Vec::new();
        let (lanes, filter) = (self.lanes, &self.filter);
        let tried = if self.form.reads() == Reads::Parity {
            let (centres, script) = (walk.centres(), self.form == Form::ScriptHash160);
            let tried = walk.points(&mut OfX { lanes, script, filter, hits: &mut hits });
            parity_to_sign(&centres, cpu.entries(), &mut hits);
            tried
        } else {
            let create = self.create.as_ref();
            walk.points(&mut OfBoth { lanes, form: self.form, create, filter, hits: &mut hits })
        };
        Batch { tried, hits, ..Batch::default() }
    }

    fn raise(&mut self, at_least: u32) {
        self.filter.raise(at_least);
    }
}

/// Hashes both coordinates of the points of a walk and looks at the digests.
struct OfBoth<'w> {
    lanes: Lanes,
    form: Form,
    create: Option<&'w Create>,
    filter: &'w DigestFilter,
    hits: &'w mut Vec<Hit>,
}

impl Points for OfBoth<'_> {
    const Y: bool = true;

    fn points(&mut self, block: &Block) {
        for (x, image) in block.x.iter().zip(0..) {
            let digests = match self.form {
                Form::Hash160Uncompressed => hash160::uncompressed(self.lanes, x, &block.y),
                _ => {
                    let accounts = block.y.each_ref().map(|y| keccak::address_of_points(self.lanes, x, y));
                    match self.create {
                        Some(create) => accounts.map(|accounts| create.addresses(self.lanes, &accounts)),
                        None => accounts,
                    }
                }
            };
            for (digests, negate) in digests.iter().zip([false, true]) {
                let spot = |point| Spot::Key(block.place(point, image, negate));
                self.filter.look(digests, block.live, spot, self.hits);
            }
        }
    }
}

/// Hashes x of the points of a walk with both parities and looks at the digests. `negate` of the hits says for now
/// whether the parity was odd.
struct OfX<'w> {
    lanes: Lanes,
    script: bool,
    filter: &'w DigestFilter,
    hits: &'w mut Vec<Hit>,
}

impl Points for OfX<'_> {
    const Y: bool = false;

    fn points(&mut self, block: &Block) {
        for (x, image) in block.x.iter().zip(0..) {
            let mut digests = hash160::compressed(self.lanes, x);
            if self.script {
                digests = hash160::witness_scripts(self.lanes, &digests);
            }
            for (digests, odd) in digests.iter().zip([false, true]) {
                let spot = |point| Spot::Key(block.place(point, image, odd));
                self.filter.look(digests, block.live, spot, self.hits);
            }
        }
    }
}

/// Points that are formed together: enough to share an inversion, and few enough for a small memory.
const TOGETHER: usize = 1 << 10;

/// Turns the parity that was hashed into the sign of the key: the point is centre +- entry, and its opposite has the
/// other parity. The images have the same y.
fn parity_to_sign(centres: &[Point], entries: &[Affine], hits: &mut [Hit]) {
    for hits in hits.chunks_mut(TOGETHER) {
        let pair = |hit: &Hit| {
            let Spot::Key(place) = hit.spot else { unreachable!("a walk has no salts") };
            let entry = place.index.checked_sub(1).map(|i| entries[i as usize]);
            (centres[place.lane as usize], if place.minus { entry.map(Affine::negate) } else { entry })
        };
        let points = add_pairs(&hits.iter().map(pair).collect::<Vec<_>>());
        for (hit, point) in hits.iter_mut().zip(points) {
            if let (Spot::Key(place), Some(point)) = (&mut hit.spot, point) {
                place.negate ^= point.y.is_odd();
            }
        }
    }
}
