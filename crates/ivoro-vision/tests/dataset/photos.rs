//! Photos in folders, archives and lists, with all that lies beside them.

use std::io::Write;
use std::path::{Path, PathBuf};

use ivoro_vision::dataset::photos::{labels, train_part};
use ivoro_vision::dataset::{
    Broken, ClassFrom, Fit, How, Photo, Photos, Shape, Unread, decode_all,
};
use zip::write::SimpleFileOptions;

use crate::fixtures::{picture, write};

const SMALL: Fit = Fit { shape: Shape { height: 2, width: 2, channels: 3 }, how: How::Resize };

fn find(path: &Path) -> Photos {
    Photos::find(&[path.to_owned()], Broken::Skip).unwrap()
}

/// Photos by their path below `root`, with their classes.
fn classes(photos: &Photos, root: &Path) -> Vec<(String, String)> {
    let below = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    let class = |class: Option<&str>| class.unwrap_or("–").to_owned();
    photos.photos.iter().map(|photo| (below(photo.name()), class(photo.class()))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

fn kinds(unread: &[(PathBuf, Unread)]) -> Vec<&'static str> {
    unread.iter().map(|(_, unread)| unread.kind).collect()
}

/// What a person's folder of photos looks like.
fn album(root: &Path) {
    for name in ["robin/2024/may/a.png", "robin/2023/b.png", "robin/c.png", "wren/d.png"] {
        picture(root, name, name.len(), 3, 5);
    }
    // a photo under another name, and files that are none
    std::fs::copy(root.join("wren/d.png"), root.join("wren/e.jfif")).unwrap();
    for name in ["robin/Thumbs.db", "robin/.DS_Store", "robin/c.png.xmp", "wren/notes.txt"] {
        write(root, name, b"no picture at all");
    }
    write(root, "wren/f.heic", b"\0\0\0\x1cftypavif\0\0\0\0avifmif1");
    write(root, "wren/g.jpg", b"");
    write(root, "wren/h.zip", b"PK\x03\x04 and so on");
    std::fs::create_dir_all(root.join("crow")).unwrap();
}

#[test]
fn folders_of_folders_are_gone_through_and_what_is_no_photo_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    album(root);
    let named = |from| {
        let mut photos = find(root);
        photos.name_classes(Some(from), None, Broken::Skip).unwrap();
        photos
    };
    let photos = named(ClassFrom::First);
    let expected = pairs(&[
        ("robin/2023/b.png", "robin"),
        ("robin/2024/may/a.png", "robin"),
        ("robin/c.png", "robin"),
        ("wren/d.png", "wren"),
        ("wren/e.jfif", "wren"),
    ]);
    assert_eq!(classes(&photos, root), expected);
    assert_eq!(kinds(&photos.unread), ["AVIF", "unreadable", "zip"]);
    assert_eq!(photos.others.len(), 4, "{:?}", photos.others);
    assert_eq!(photos.empty_folders(), ["crow"]);
    let unread: Vec<&Unread> = photos.unread.iter().map(|(_, unread)| unread).collect();
    assert_eq!(Photos::tell(&unread), "AVIF 1, unreadable 1, zip 1");
    let names = |from| -> Vec<String> {
        classes(&named(from), root).into_iter().map(|(_, class)| class).collect()
    };
    assert_eq!(names(ClassFrom::Last), ["2023", "may", "robin", "wren", "wren"]);
    assert_eq!(names(ClassFrom::Path), ["robin/2023", "robin/2024/may", "robin", "wren", "wren"]);
    let error = Photos::find(&[root.to_owned()], Broken::Fail).unwrap_err().to_string();
    assert!(error.contains("wren/f.heic: an image in the format AVIF"), "{error}");
}

#[test]
fn a_photo_without_a_folder_has_no_class_unless_one_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    picture(root, "a.png", 0, 3, 5);
    picture(root, "robin/b.png", 0, 3, 5);
    let mut photos = find(root);
    photos.name_classes(None, None, Broken::Skip).unwrap();
    assert_eq!(classes(&photos, root), pairs(&[("robin/b.png", "robin")]));
    assert_eq!(kinds(&photos.unread), ["without a class"]);
    let error = find(root).name_classes(None, None, Broken::Fail).unwrap_err().to_string();
    assert!(error.contains("a.png: no folder names the class"), "{error}");
    let mut photos = find(root);
    photos.name_classes(None, Some("wren"), Broken::Fail).unwrap();
    assert_eq!(classes(&photos, root), pairs(&[("a.png", "wren"), ("robin/b.png", "wren")]));
}

#[cfg(unix)]
#[test]
fn links_are_followed_once_and_pipes_are_not_opened() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("photos");
    picture(&root, "robin/a.png", 0, 3, 5);
    picture(folder.path(), "elsewhere/b.png", 1, 3, 5);
    symlink("../elsewhere", root.join("wren")).unwrap();
    symlink("../../elsewhere/b.png", root.join("robin/linked.png")).unwrap();
    // loops: to itself, to the folder above, and to one that was there
    symlink(".", root.join("self")).unwrap();
    symlink("..", root.join("robin/up")).unwrap();
    symlink("robin", root.join("same")).unwrap();
    symlink("nowhere", root.join("robin/broken.png")).unwrap();
    let pipe = root.join("robin/x.jpg");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut photos = find(&root);
    photos.name_classes(None, None, Broken::Skip).unwrap();
    let expected =
        pairs(&[("robin/a.png", "robin"), ("robin/linked.png", "robin"), ("wren/b.png", "wren")]);
    assert_eq!(classes(&photos, &root), expected);
    let mut found = kinds(&photos.unread);
    found.sort_unstable();
    let seen = "folder seen before";
    assert_eq!(found, [seen, seen, seen, "no file", "unreadable"]);
    let pipe = photos.unread.iter().find(|(_, unread)| unread.kind == "no file").unwrap();
    assert!(pipe.1.why.ends_with("expected a file, found a named pipe"), "{}", pipe.1);
}

fn zipped(path: &Path, files: &[(&str, &[u8])]) {
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

fn png() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    picture(folder.path(), "a.png", 0, 3, 5);
    std::fs::read(folder.path().join("a.png")).unwrap()
}

#[test]
fn an_archive_is_read_as_its_folder_whatever_its_names_say() {
    let folder = tempfile::tempdir().unwrap();
    let (path, png) = (folder.path().join("photos.zip"), png());
    let files: [(&str, &[u8]); 7] = [
        ("photos/robin/a.png", &png),
        ("photos/../../robin/../wren/b.png", &png),
        ("/photos\\robin\\c.png", &png),
        ("photos/robin/Thumbs.db", b"nothing"),
        ("__MACOSX/photos/robin/._a.png", &png),
        ("photos/robin/cut.png", &png[..png.len() / 2]),
        ("photos/robin/d.jp2", b"\0\0\0\x0cjP  \r\n\x87\n"),
    ];
    zipped(&path, &files);
    let mut photos = find(&path);
    photos.name_classes(None, None, Broken::Skip).unwrap();
    let expected = pairs(&[
        ("photos/robin/a.png", "robin"),
        ("photos/robin/c.png", "robin"),
        ("photos/robin/cut.png", "robin"),
        ("photos/robin/wren/b.png", "robin"),
    ]);
    assert_eq!(classes(&photos, &path), expected);
    assert_eq!((photos.others.len(), kinds(&photos.unread)), (2, vec!["JP2"]));
    let inputs: Vec<_> = photos.photos.iter().map(Photo::input).collect();
    let images = decode_all(&inputs, SMALL, Broken::Skip).unwrap();
    assert_eq!((images.rows, images.broken[0].1.kind), (vec![0, 1, 3], "truncated"));
    // nothing but the archive is there
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    // where a folder is asked for, it is the first one
    let mut photos = find(&path);
    photos.name_classes(Some(ClassFrom::First), None, Broken::Skip).unwrap();
    assert!(photos.photos.iter().all(|photo| photo.class() == Some("photos")));
}

#[test]
fn archives_that_are_cut_or_unpack_to_more_than_they_say_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, png) = (folder.path().join("photos.zip"), png());
    // a photo with 64 MB behind it that deflate to 64 KB
    let long = [&png[..], &vec![0; 1 << 26]].concat();
    zipped(&path, &[("robin/a.png", &long), ("robin/b.png", &png)]);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = Photos::find(std::slice::from_ref(&path), Broken::Skip).unwrap_err().to_string();
    assert!(error.contains("not a complete zip archive"), "{error}");
    // a size that is claimed smaller, in the list at the end and before the file
    let mut forged = bytes;
    let size = (long.len() as u32).to_le_bytes();
    let places: Vec<usize> =
        (0..forged.len() - 4).filter(|&at| forged[at..at + 4] == size).collect();
    assert!(!places.is_empty());
    for at in places {
        forged[at..at + 4].copy_from_slice(&(png.len() as u32).to_le_bytes());
    }
    std::fs::write(&path, forged).unwrap();
    let mut photos = find(&path);
    photos.name_classes(None, None, Broken::Skip).unwrap();
    let inputs: Vec<_> = photos.photos.iter().map(Photo::input).collect();
    let images = decode_all(&inputs, SMALL, Broken::Skip).unwrap();
    assert_eq!((images.rows.len(), images.broken.len()), (1, 1), "{:?}", images.broken);
    assert!(images.broken[0].1.why.contains("a.png"), "{:?}", images.broken);
}

#[test]
fn a_list_names_photos_and_their_classes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    picture(root, "robin/a.png", 0, 3, 5);
    picture(root, "wren/b.png", 0, 3, 5);
    let at = |name: &str| root.join(name).display().to_string();
    let list = format!("{}\n\n{}\tcrow\n", at("robin/a.png"), at("wren/b.png"));
    let mut photos = Photos::default();
    photos.add_list(&list, Broken::Skip).unwrap();
    photos.name_classes(None, None, Broken::Fail).unwrap();
    let expected = pairs(&[("robin/a.png", "robin"), ("wren/b.png", "crow")]);
    assert_eq!(classes(&photos, root), expected);
    photos.add_list("nowhere.png", Broken::Skip).unwrap();
    assert_eq!((photos.photos.len(), kinds(&photos.unread)), (2, vec!["missing"]));
    let error = photos.add_list("nowhere.png", Broken::Fail).unwrap_err().to_string();
    assert!(error.contains("nowhere.png: there is no such file or folder"), "{error}");
}

#[test]
fn folders_are_labels_where_a_model_knows_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for name in ["test/robin/1/a.png", "test/wren/1/b.png", "test/crow/c.png", "test/d.png"] {
        picture(root, name, 0, 3, 5);
    }
    let knows = |name: &str| ["robin", "wren"].contains(&name);
    let of = |path: &Path| labels(&find(path).photos, knows);
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(of(root), [some("crow"), None, some("robin"), some("wren")]);
    assert_eq!(of(&root.join("test/robin/1")), [None]);
    assert_eq!(of(&root.join("test/crow")), [None]);
    picture(root, "test/robin/e.png", 0, 3, 5);
    // the folder that was named is called as a class
    assert_eq!(of(&root.join("test/robin")), [some("robin"), some("robin")]);
}

#[test]
fn of_a_divided_folder_the_train_part_is_learned() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    picture(root, "train/robin/a.png", 0, 3, 5);
    assert_eq!(train_part(root), None);
    picture(root, "test/robin/b.png", 0, 3, 5);
    assert_eq!(train_part(root), Some(root.join("train")));
}
