//! The whole screen from fixed views, at the widths that matter, as a terminal would have it.

use super::*;
use crate::screen::model::Health;

const LOOKS: Looks = Looks { colours: true, unicode: true };

/// A search on two cards and the processor, with everything there is to be shown.
fn search() -> View {
    let device = |id: &str, rate, share, health| DeviceView {
        id: id.to_owned(),
        speed: Some((rate, share)),
        health,
        about: Some(format!("what {id} is, in a line")),
    };
    let warm = Health { celsius: Some(61), watts: Some(412.4), throttled: None };
    let hot = Health { celsius: Some(89), watts: Some(350.0), throttled: Some("heat") };
    View {
        phase: "running".to_owned(),
        sought: "npub  cafecafe".to_owned(),
        odds: ["1 in 2^40.0".to_owned(), "1 in 1,099,511,627,776 (2^40.0)".to_owned()],
        figures: Some(Figures {
            elapsed: 723.4,
            rate: Some(121.3e9),
            minute: Some(120.9e9),
            tried: 87.5e12,
            share: 0.345,
        }),
        share_is: "luck",
        when: Some([
            "50 % by 16:42".to_owned(),
            "next match 50 % by 16:42, in 9 s; all 20 by 16:45".to_owned(),
        ]),
        found: Some((4, Some(20))),
        output: Some("keys.txt".to_owned()),
        last: Some("npub1cafecafe7s9sqwfx4cvpk0l9hv5wrfns4d3jx8n2ylqg6zet0uamqvsk3f9".to_owned()),
        devices: vec![
            device("cuda:0", 80.2e9, 0.661, Some(warm)),
            device("cuda:1", 41.0e9, 0.338, Some(hot)),
            device("cpu", 1.1e8, 0.001, None),
        ]
        .into_iter()
        .map(|device| DeviceView { about: None, ..device })
        .collect(),
        keys: true,
        can_pause: true,
        ..View::default()
    }
}

/// A scan in its first minute.
fn scan() -> View {
    View {
        phase: "running".to_owned(),
        sought: "scan  1:ffffffffff (2^40.0 keys)".to_owned(),
        odds: ["3 addresses".to_owned(), "3 addresses, as p2pkh, p2wpkh".to_owned()],
        figures: Some(Figures {
            elapsed: 31.0,
            rate: Some(6.5e9),
            minute: None,
            tried: 2.0e11,
            share: 0.1832,
        }),
        share_is: "covered",
        when: Some(["ends 14:35".to_owned(), "ends 14:35, in 2 min 18 s".to_owned()]),
        found: Some((1, Some(3))),
        saved: Some("2.0 s".to_owned()),
        last: Some("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH".to_owned()),
        devices: vec![DeviceView {
            id: "cuda:0".to_owned(),
            speed: Some((6.5e9, 1.0)),
            health: None,
            about: None,
        }],
        keys: true,
        can_pause: true,
        ..View::default()
    }
}

/// What a terminal shows of it.
fn shown(view: &View, columns: u16, looks: Looks) -> Vec<String> {
    let rows = block(view, columns, 24, looks).rows(columns, Looks { colours: false, ..looks });
    let last = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    rows[..last].to_vec()
}

#[track_caller]
fn assert_shown(view: &View, columns: u16, expected: &str) {
    let rows = shown(view, columns, LOOKS);
    let expected: Vec<&str> = expected.trim_matches('\n').lines().map(str::trim_end).collect();
    assert_eq!(rows, expected, "\n{}", rows.join("\n"));
}

#[test]
fn a_search_at_80_columns() {
    assert_shown(
        &search(),
        80,
        "
npub  cafecafe                                  1 in 1,099,511,627,776 (2^40.0)
running   12:03   121.3 G/s now, 120.9 G/s over a minute   2^46.3 tried
luck ━━━━━━━━━━━━━━━━━━━━━━───────────────────────────────────────────   34.5 %
next match 50 % by 16:42, in 9 s; all 20 by 16:45   4 of 20 found   to keys.txt
cuda:0    80.2 G/s   66 %   61 °C   412 W
cuda:1    41.0 G/s   34 %   89 °C   350 W   slowed down: heat
cpu      110.0 M/s    0 %
last  npub1cafecafe7s9sqwfx4cvpk0l9hv5wrfns4d3jx8n2ylqg6zet0uamqvsk3f9
s details   p pause   q stop
",
    );
}

#[test]
fn a_search_that_is_paused_shows_no_rate() {
    let mut view = View { mood: Mood::Paused, phase: "paused".to_owned(), when: None, ..search() };
    let figures = view.figures.as_mut().unwrap();
    (figures.rate, figures.minute) = (None, None);
    view.devices.iter_mut().for_each(|device| device.speed = None);
    assert_shown(
        &view,
        80,
        "
npub  cafecafe                                  1 in 1,099,511,627,776 (2^40.0)
paused   12:03   2^46.3 tried
luck ━━━━━━━━━━━━━━━━━━━━━━───────────────────────────────────────────   34.5 %
4 of 20 found   to keys.txt
cuda:0                      61 °C   412 W
cuda:1                      89 °C   350 W   slowed down: heat
cpu
last  npub1cafecafe7s9sqwfx4cvpk0l9hv5wrfns4d3jx8n2ylqg6zet0uamqvsk3f9
s details   p go on   q stop
",
    );
    assert_eq!(shown(&view, 40, LOOKS)[0], "paused  12:03");
}

#[test]
fn a_search_at_40_columns_has_the_figures_that_matter() {
    assert_shown(
        &search(),
        40,
        "
running  121.3 G/s  12:03
luck ━━━━━━━━─────────────────   34.5 %
50 % by 16:42  4 of 20 found
",
    );
}

#[test]
fn a_search_at_200_columns_is_no_wider_than_is_read_at_a_glance() {
    assert_shown(
        &search(),
        200,
        "
npub  cafecafe                                                       1 in 1,099,511,627,776 (2^40.0)
running   12:03   121.3 G/s now, 120.9 G/s over a minute   2^46.3 tried
luck ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━─────────────────────────────────────────────────────────   34.5 %
next match 50 % by 16:42, in 9 s; all 20 by 16:45   4 of 20 found   to keys.txt
cuda:0    80.2 G/s   66 %   61 °C   412 W
cuda:1    41.0 G/s   34 %   89 °C   350 W   slowed down: heat
cpu      110.0 M/s    0 %
last  npub1cafecafe7s9sqwfx4cvpk0l9hv5wrfns4d3jx8n2ylqg6zet0uamqvsk3f9
s details   p pause   q stop
",
    );
}

#[test]
fn a_scan_at_80_and_40_columns() {
    assert_shown(
        &scan(),
        80,
        "
scan  1:ffffffffff (2^40.0 keys)                  3 addresses, as p2pkh, p2wpkh
running   0:31   6.5 G/s   2^37.5 tested
covered ━━━━━━━━━━━───────────────────────────────────────────────────   18.3 %
ends 14:35, in 2 min 18 s   1 of 3 found   map saved 2.0 s ago
cuda:0     6.5 G/s  100 %
last  1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH
s details   p pause   q stop
",
    );
    assert_shown(
        &scan(),
        40,
        "
running  6.5 G/s  0:31
covered ━━━━──────────────────   18.3 %
ends 14:35  1 of 3 found
",
    );
}

#[test]
fn before_it_begins_there_is_what_it_waits_for() {
    let view = View {
        phase: "compiling kernels, 5.0 s, first run only (cuda:0)".to_owned(),
        sought: "npub  cafecafe".to_owned(),
        odds: ["1 in 2^40.0".to_owned(), "1 in 1,099,511,627,776 (2^40.0)".to_owned()],
        ..View::default()
    };
    assert_shown(
        &view,
        80,
        "
npub  cafecafe                                  1 in 1,099,511,627,776 (2^40.0)
compiling kernels, 5.0 s, first run only (cuda:0)
",
    );
    assert_shown(
        &view,
        40,
        "
npub  cafecafe
compiling kernels, 5.0 s, first run on…
",
    );
}

#[test]
fn no_row_fills_the_last_column_and_no_block_the_whole_height() {
    for view in [search(), scan()] {
        for columns in 1..250 {
            let drawn = block(&view, columns, 24, LOOKS);
            let (rows, most) = (drawn.rows(columns, LOOKS), usize::from(columns).saturating_sub(1).max(1));
            for row in rows {
                assert!(bare(&row).chars().count() <= most, "{columns}: {row}");
            }
            for height in 1..12 {
                let rows = block(&view, columns, height, LOOKS).rows(columns, LOOKS).len();
                assert!(rows < usize::from(height).max(2), "{rows} rows of {height}");
            }
        }
    }
}

/// A row without its colours.
fn bare(row: &str) -> String {
    let mut pieces = row.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn colours_are_left_out_where_they_are_not_wished_for_and_signs_where_they_are_not_known() {
    let coloured = block(&search(), 80, 24, LOOKS).rows(80, LOOKS).concat();
    assert!(coloured.contains("\u{1b}[") && coloured.contains('━'));
    assert!(coloured.ends_with("\u{1b}[0m"), "what follows has no colour");
    let plain = Looks { colours: false, unicode: false };
    let rows = block(&search(), 80, 24, plain).rows(80, plain).concat();
    assert!(rows.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{rows}");
    assert!(rows.contains("####") && rows.contains("61 C"), "{rows}");
}
