//! Whose a map is, and what is beside it or in its place.

use super::*;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A map tells the bounds of a key, and what is covered.
#[test]
fn a_map_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map");
    let open = || MapFile::open(&path, job(number(5), 10), |_| Order::Sequential);
    open().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut held = open().unwrap();
    let batch = Planner::new(held.map()).next(number(3)).unwrap();
    held.map_mut().complete(&batch, 1);
    held.save().unwrap();
    drop(held);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for open_to_others in [0o644, 0o640, 0o602] {
        mode(&path, open_to_others);
        for refused in [open().map(drop), MapFile::read(&path).map(drop)] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(&format!("chmod 600 {}", path.display())), "{error}");
        }
    }
    mode(&path, 0o600);
    mode(folder.path(), 0o777);
    assert!(open().unwrap_err().to_string().contains("other users may write"));
    mode(folder.path(), 0o700);
    open().unwrap();
    // Only root can make a file that belongs to somebody else.
    if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
        for refused in [open().map(drop), MapFile::read(&path).map(drop)] {
            assert!(refused.unwrap_err().to_string().contains("another user (uid 12345"));
        }
    }
}

/// The lock lies on the file, so another way to it leads to the same lock or nowhere.
#[test]
fn no_second_name_of_a_map_leads_around_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link, second) =
        (folder.path().join("map"), folder.path().join("link"), folder.path().join("second"));
    let open = |path: &Path| MapFile::open(path, job(number(5), 10), |_| Order::Sequential);
    let held = open(&path).unwrap();
    symlink(&path, &link).unwrap();
    assert!(open(&link).unwrap_err().to_string().contains("symbolic link"));
    fs::hard_link(&path, &second).unwrap();
    for name in [&path, &second] {
        assert!(open(name).unwrap_err().to_string().contains("2 names"));
    }
    drop(held);
    assert!(open(&link).is_err() && open(&second).is_err());
    fs::remove_file(&second).unwrap();
    open(&path).unwrap();
}

/// What somebody else put beside a map is not written through, and a lock that an earlier version left is no obstacle.
#[test]
fn links_beside_a_map_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, victim) = (folder.path().join("map"), folder.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    let plant = |name: &str| symlink(&victim, folder.path().join(name)).unwrap();
    ["map.new", "map.lock"].into_iter().for_each(plant);
    let mut held = MapFile::open(&path, job(number(5), 10), |_| Order::Sequential).unwrap();
    let mut planner = Planner::new(held.map());
    for _ in 0..2 {
        held.map_mut().complete(&planner.next(number(3)).unwrap(), 1);
        held.save().unwrap();
        assert!(!fs::symlink_metadata(folder.path().join("map.new")).is_ok_and(|there| there.is_symlink()));
        plant("map.new");
    }
    drop(held);
    assert_eq!(MapFile::read(&path).unwrap().covered(), number(6));
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(fs::symlink_metadata(folder.path().join("map.lock")).unwrap().is_symlink());
}

#[test]
fn a_file_that_is_no_map_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map");
    for content in ["my notes\n", "", "warpsmith map 9\n", "warpsmith map 2\nrange 1:5\n"] {
        fs::write(&path, content).unwrap();
        mode(&path, 0o600);
        assert!(MapFile::open(&path, job(number(5), 10), |_| Order::Sequential).is_err());
        assert!(matches!(MapFile::create(&path, sample(random)), Err(Error::Exists { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
    let missing = folder.path().join("no folder").join("map");
    assert!(matches!(MapFile::open(&missing, job(number(5), 10), random), Err(Error::Io { .. })));
}
