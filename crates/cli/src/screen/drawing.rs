//! From a view to rows of the terminal: which figures at which width, and in which colours.

use warpsmith_console::block::{Block, GAP, Looks, bar, clipped, wrapped_by};
use warpsmith_console::human;
use warpsmith_console::styled::{Line, Span, Style};

use super::model::{DeviceView, Figures, Mood, View};

/// Below this many columns there are the figures that matter and nothing else.
const NARROW: usize = 60;

/// The longest bar: a longer one says no more.
const BAR: usize = 100;

/// What of the view is shown in so many columns and at most so many rows. The last column stays free: some terminals wrap as soon as
/// it is filled.
pub(crate) fn block(view: &View, columns: u16, rows: u16, looks: Looks) -> Block {
    let width = usize::from(columns).saturating_sub(1);
    let mut lines = if width < NARROW - 1 { narrow(view, width, looks) } else { wide(view, width, looks) };
    // A block that does not fit could not be taken back.
    lines.truncate(usize::from(rows).saturating_sub(1).max(1));
    Block::new(lines)
}

/// Three rows for a narrow terminal: how fast, how likely by now, and until when.
fn narrow(view: &View, width: usize, looks: Looks) -> Vec<Line> {
    let Some(figures) = &view.figures else {
        let mut rows = vec![
            Line::styled(clipped(&view.sought, width, looks), Style::Strong),
            Line::styled(clipped(&view.phase, width, looks), mood(view.mood)),
        ];
        rows.extend(view.work.map(|share| bar("done", share, width, looks)));
        return rows;
    };
    let phase = Span::styled(view.phase.clone(), mood(view.mood));
    let rate = figures.rate.map(|rate| Span::raw(human::rate(rate)));
    let elapsed = Span::styled(human::clock(figures.elapsed), Style::Quiet);
    let first = [Some(phase), rate, Some(elapsed)].into_iter().flatten().collect();
    let last = view.when.iter().map(|when| Span::raw(when[0].clone()));
    let last = last.chain(view.found.map(|found| Span::styled(found_text(found), Style::Good)));
    vec![
        together(first, "  ", width),
        bar(view.share_is, figures.share, width, looks),
        together(last.collect(), "  ", width),
    ]
}

/// Everything there is.
fn wide(view: &View, width: usize, looks: Looks) -> Vec<Line> {
    let mut rows = vec![title(view, width.min(BAR), looks), status(view, width)];
    if let Some(figures) = &view.figures {
        rows.push(bar(view.share_is, figures.share, width.min(BAR), looks));
        let when = view.when.iter().map(|when| Span::raw(when[1].clone()));
        let found = view.found.map(|found| Span::styled(found_text(found), Style::Good));
        let output = view.output.iter().map(|file| Span::styled(format!("to {file}"), Style::Quiet));
        let saved = view.saved.iter().map(|ago| Span::styled(format!("map saved {ago} ago"), Style::Quiet));
        let best = view.best.iter().map(|best| Span::styled(best.clone(), Style::Strong));
        let row: Vec<_> = best.chain(when).chain(found).chain(output).chain(saved).collect();
        // What does not fit into one row gets another.
        rows.extend(wrapped(row, width));
    }
    rows.extend(view.work.map(|share| bar("done", share, width.min(BAR), looks)));
    rows.extend(devices(view, width, looks));
    if let Some(last) = &view.last {
        rows.push(Line::from(vec![
            Span::styled("last  ", Style::Quiet),
            Span::styled(last.clone(), Style::Good),
        ]));
    }
    let quiet = |text: &String| Line::styled(clipped(text, width, looks), Style::Quiet);
    rows.extend(view.note.iter().chain(&view.remarks).map(quiet));
    if view.keys {
        let pause = if view.mood == Mood::Paused { "p go on" } else { "p pause" };
        let details = if view.details { "s fewer details" } else { "s details" };
        let keys = [Some(details), view.can_pause.then_some(pause), Some("q stop")];
        rows.push(Line::styled(keys.into_iter().flatten().collect::<Vec<_>>().join(GAP), Style::Quiet));
    }
    rows
}

/// What is sought, and at the right its odds.
fn title(view: &View, width: usize, looks: Looks) -> Line {
    // The longer form where it leaves room for what is sought.
    let taken = view.sought.chars().count() + GAP.len();
    let odds = view.odds.iter().rev().find(|odds| taken + odds.chars().count() <= width);
    let odds = odds.unwrap_or(&view.odds[0]);
    let room = width.saturating_sub(odds.chars().count() + GAP.len());
    let sought = clipped(&view.sought, room, looks);
    let blank = " ".repeat(width.saturating_sub(sought.chars().count() + odds.chars().count()));
    Line::from(vec![
        Span::styled(sought, Style::Strong),
        Span::raw(blank),
        Span::styled(odds.clone(), Style::Quiet),
    ])
}

/// Phase, rates, and how many were tried.
fn status(view: &View, width: usize) -> Line {
    let Some(Figures { elapsed, rate, minute, tried, .. }) = &view.figures else {
        return Line::styled(view.phase.clone(), mood(view.mood));
    };
    let phase = Span::styled(view.phase.clone(), mood(view.mood));
    let rates = rate.map(|rate| match minute {
        None => human::rate(rate),
        Some(minute) => format!("{} now, {} over a minute", human::rate(rate), human::rate(*minute)),
    });
    let verb = if view.share_is == "covered" { "tested" } else { "tried" };
    let mut tried_text = format!("{} {verb}", human::power_of_two(*tried));
    if view.details {
        tried_text = format!("{} {verb} ({})", human::count(*tried), human::power_of_two(*tried));
    }
    let elapsed = Span::raw(human::clock(*elapsed));
    let rates = rates.map(|rates| Span::styled(rates, Style::Strong));
    let all = [Some(phase), Some(elapsed), rates, Some(Span::raw(tried_text))];
    together(all.into_iter().flatten().collect(), GAP, width)
}

/// A row a device, and those that get ready.
fn devices(view: &View, width: usize, looks: Looks) -> Vec<Line> {
    let ids = view.devices.iter().map(|device| device.id.as_str());
    let ids = ids.chain(view.busy.iter().filter_map(|(device, _)| device.as_deref()));
    let column = ids.map(str::len).max().unwrap_or(0).max(6);
    let row = |device: &DeviceView| {
        let [rate, share] = device.speed.map_or(Default::default(), |(rate, share)| {
            [human::rate(rate), format!("{:.0} %", share * 100.0)]
        });
        let mut row = Line::from(format!("{:<column$}  {rate:>10}  {share:>5}", device.id));
        if let Some(health) = &device.health {
            let degree = if looks.unicode { "°C" } else { "C" };
            let celsius = health.celsius.map(|celsius| format!("{celsius} {degree}"));
            let watts = health.watts.map(|watts| format!("{watts:.0} W"));
            for text in celsius.into_iter().chain(watts) {
                row.push_span(Span::styled(format!("{GAP}{text}"), Style::Quiet));
            }
            if let Some(why) = health.throttled {
                row.push_span(Span::styled(format!("{GAP}slowed down: {why}"), Style::Careful));
            }
        }
        row
    };
    let mut rows = Vec::new();
    for device in &view.devices {
        rows.push(row(device));
        if let Some(about) = &device.about {
            let text = clipped(&format!("{:<column$}  {about}", ""), width, looks);
            rows.push(Line::styled(text, Style::Quiet));
        }
    }
    if view.figures.is_some() {
        for (device, doing) in &view.busy {
            let text = match device {
                Some(device) => format!("{device:<column$}  {doing}"),
                None => doing.clone(),
            };
            rows.push(Line::styled(clipped(&text, width, looks), Style::Quiet));
        }
    }
    rows
}

fn mood(mood: Mood) -> Style {
    match mood {
        Mood::Running => Style::Good,
        Mood::Paused | Mood::Stopping => Style::Careful,
    }
}

/// `4 of 20 found`.
fn found_text((found, of): (u64, Option<u64>)) -> String {
    let found = human::count(found as f64);
    match of {
        Some(of) => format!("{found} of {} found", human::count(of as f64)),
        None => format!("{found} found"),
    }
}

/// As many of these as fit into a row, from the first on.
fn together(parts: Vec<Span>, gap: &'static str, width: usize) -> Line {
    wrapped_by(parts, gap, width).into_iter().next().unwrap_or_default()
}

/// These in as many rows as they take.
fn wrapped(parts: Vec<Span>, width: usize) -> Vec<Line> {
    wrapped_by(parts, GAP, width)
}

#[cfg(test)]
mod tests;
