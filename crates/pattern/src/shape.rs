//! Shapes: what a pattern fixes, as a sequence of symbol sets with gaps of variable length between them.
//!
//! Every kind of pattern is lowered to shapes, so this is the one place where lengths and positions meet. A shape
//! covers the whole text after the head. Knows symbol sets; knows nothing of digest bits.

use crate::length::Set;
use crate::text::Text;

/// One part of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// One symbol out of a set.
    One(Set),
    /// From `min` to `max` symbols out of a set.
    Gap { set: Set, min: usize, max: usize },
}

/// A sequence of items that together make up the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub items: Vec<Item>,
}

/// What a text must hold at each position for one way to lay out a shape.
pub(crate) type Placement = Vec<Set>;

impl Shape {
    /// A gap that any symbols can fill.
    pub fn free(text: &Text) -> Item {
        Item::Gap { set: text.any, min: 0, max: text.len() }
    }

    /// The shape with each of its sets replaced.
    pub fn map(mut self, with: impl Fn(Set) -> Set) -> Self {
        for item in &mut self.items {
            let (Item::One(set) | Item::Gap { set, .. }) = item;
            *set = with(*set);
        }
        self
    }

    /// The sets at the first positions, as far as their places are certain.
    pub fn leading(&self) -> Vec<Set> {
        let mut sets = Vec::new();
        for item in &self.items {
            match *item {
                Item::One(set) => sets.push(set),
                Item::Gap { set, min, .. } => {
                    sets.extend(std::iter::repeat_n(set, min));
                    break;
                }
            }
        }
        sets
    }

    /// Whether its position in the text is fixed from the start on.
    pub fn is_anchored(&self) -> bool {
        matches!(self.items.first(), Some(Item::One(_)))
    }

    /// The ways to lay the shape out over the text, leaving out those that need a symbol a position cannot hold.
    /// At most `limit` (at least 1): where there are more, the shape is weakened by letting go of its weakest inner
    /// parts. So some placement allows every text the shape describes, but not only those.
    pub fn placements(mut self, text: &Text, limit: usize) -> Vec<Placement> {
        loop {
            let ways = self.ways(text);
            if ways[0][0] <= limit {
                let mut found = Vec::with_capacity(ways[0][0]);
                self.place(text, &ways, &mut Vec::with_capacity(text.len()), 0, &mut found);
                return found;
            }
            self = self.weakened(text).expect("a shape with fewer than two gaps has at most one placement");
        }
    }

    /// Placements of this shape or a weaker one, at most `limit`, with the share of digests they pass: the fewest that
    /// pass no more than `enough`, else those that pass the least.
    pub fn sharpest(self, text: &Text, limit: usize, enough: f64) -> (f64, Vec<Placement>) {
        let mut weaker = vec![self];
        while let Some(next) = weaker.last().and_then(|shape| shape.weakened(text)) {
            weaker.push(next);
        }
        let mut best: Option<(f64, Vec<Placement>)> = None;
        for shape in weaker.into_iter().rev() {
            let placements = shape.placements(text, limit);
            let passed = placements.iter().map(|placement| text.shares(placement)).sum();
            // Of equally sharp ones the weaker shape stays: it has fewer placements.
            if best.as_ref().is_none_or(|(least, _)| passed < *least) {
                best = Some((passed, placements));
            }
            if passed <= enough {
                break;
            }
        }
        best.unwrap_or_default()
    }

    /// `ways[i][p]`: in how many ways the items from `i` on fill the text from position `p` on.
    fn ways(&self, text: &Text) -> Vec<Vec<usize>> {
        let mut ways = vec![vec![0; text.len() + 1]; self.items.len() + 1];
        ways[self.items.len()][text.len()] = 1;
        for (i, item) in self.items.iter().enumerate().rev() {
            for position in 0..=text.len() {
                ways[i][position] = fillings(item, position, text)
                    .fold(0, |sum: usize, end| sum.saturating_add(ways[i + 1][end]));
            }
        }
        ways
    }

    /// Appends the placements that continue `done` with the items from `next` on; goes only where some are.
    fn place(
        &self,
        text: &Text,
        ways: &[Vec<usize>],
        done: &mut Placement,
        next: usize,
        found: &mut Vec<Placement>,
    ) {
        let start = done.len();
        if ways[next][start] == 0 {
            return;
        }
        let Some(item) = self.items.get(next) else { return found.push(done.clone()) };
        let (Item::One(set) | Item::Gap { set, .. }) = *item;
        for end in fillings(item, start, text) {
            done.extend((done.len()..end).map(|position| set & text.allowed[position]));
            self.place(text, ways, done, next + 1, found);
        }
        done.truncate(start);
    }

    /// The shape with its weakest part between two gaps, and both gaps, replaced by one gap; `None` when it has
    /// fewer than two.
    pub fn weakened(&self, text: &Text) -> Option<Self> {
        let gaps: Vec<usize> =
            (0..self.items.len()).filter(|&i| matches!(self.items[i], Item::Gap { .. })).collect();
        let bits = |between: &[Item]| -> f64 {
            let size = |item: &Item| match item {
                Item::One(set) => {
                    f64::from(text.any.count_ones()).log2() - f64::from(set.count_ones()).log2()
                }
                Item::Gap { .. } => 0.0,
            };
            between.iter().map(size).sum()
        };
        let weakest = gaps
            .windows(2)
            .map(|pair| pair[0]..=pair[1])
            .min_by(|a, b| bits(&self.items[a.clone()]).total_cmp(&bits(&self.items[b.clone()])))?;
        let mut items = self.items.clone();
        items.splice(weakest.clone(), [enclose(&self.items[weakest])]);
        Some(Self { items })
    }
}

/// The positions where the item can end when it begins at `position`.
fn fillings(item: &Item, position: usize, text: &Text) -> impl Iterator<Item = usize> {
    let (set, min, max) = match *item {
        Item::One(set) => (set, 1, 1),
        Item::Gap { set, min, max } => (set, min, max),
    };
    let room = text.allowed[position..].iter().take_while(|&&allowed| set & allowed != 0).count();
    (min..=max.min(room)).map(move |length| position + length)
}

/// The least and most symbols these items cover.
pub(crate) fn lengths(items: &[Item]) -> (usize, usize) {
    items.iter().fold((0, 0), |(least, most): (usize, usize), item| match item {
        Item::One(_) => (least + 1, most + 1),
        Item::Gap { min, max, .. } => (least.saturating_add(*min), most.saturating_add(*max)),
    })
}

/// One gap that allows everything these items allow.
pub(crate) fn enclose(items: &[Item]) -> Item {
    let (min, max) = lengths(items);
    let set = items.iter().fold(0, |all, item| match item {
        Item::One(set) => all | set,
        Item::Gap { set, .. } => all | set,
    });
    Item::Gap { set, min, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npub() -> Text {
        Text::new(warpsmith_chain::find("npub").unwrap(), &crate::Options::default())
    }

    #[test]
    fn a_floating_symbol_has_a_placement_for_each_position_that_can_hold_it() {
        let text = npub();
        let free = Shape::free(&text);
        // Symbol 1 (p) cannot stand at the 52nd position, symbol 0 (q) can.
        for (symbol, expected) in [(0, 58), (1, 57)] {
            let shape = Shape { items: vec![free, Item::One(1 << symbol), free] };
            let placements = shape.placements(&text, 4096);
            assert_eq!(placements.len(), expected);
            assert!(placements.iter().all(|p| p.len() == 58 && p.contains(&(1 << symbol))));
        }
    }

    #[test]
    fn too_many_placements_let_go_of_the_weakest_inner_part() {
        let text = npub();
        let free = Shape::free(&text);
        let strong = [Item::One(2), Item::One(4)];
        let items = [&[free, Item::One(6)][..], &[free][..], &strong[..], &[free][..]].concat();
        let placements = Shape { items }.placements(&text, 60);
        // The part {1,2} gives way; `strong` stays and needs at least one symbol before it.
        assert!(placements.len() <= 57 && placements.len() > 50);
        assert!(placements.iter().all(|p| p[0] == text.any && p.windows(2).any(|pair| pair == [2, 4])));
    }

    #[test]
    fn lengths_that_cannot_add_up_have_no_placement() {
        let text = npub();
        assert!(Shape { items: vec![Item::One(1); 59] }.placements(&text, 10).is_empty());
        assert!(Shape { items: vec![Item::One(1); 57] }.placements(&text, 10).is_empty());
        let gap = Item::Gap { set: text.any, min: 58, max: 70 };
        assert_eq!(Shape { items: vec![gap] }.placements(&text, 10).len(), 1);
    }
}
