//! Files of data sets, written byte by byte.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use ivoro_vision::dataset::{Dataset, OpenOptions};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The image whose value tells row, column and channel apart: no two transposed or interleaved
/// readings of it agree.
pub(crate) fn pixel(image: usize, row: usize, column: usize, channel: usize) -> u8 {
    ((image * 7 + row * 31 + column * 3 + channel * 101) % 251) as u8
}

pub(crate) fn open(path: &Path) -> Dataset {
    Dataset::open(path, &OpenOptions::default()).unwrap()
}

pub(crate) fn refusal(path: &Path) -> String {
    Dataset::open(path, &OpenOptions::default()).unwrap_err().to_string()
}

/// Pixels in the order image, row, column, channel.
pub(crate) fn interleaved(
    images: &[usize],
    height: usize,
    width: usize,
    channels: usize,
) -> Vec<u8> {
    let mut pixels = Vec::new();
    for &image in images {
        for row in 0..height {
            for column in 0..width {
                pixels.extend((0..channels).map(|channel| pixel(image, row, column, channel)));
            }
        }
    }
    pixels
}

/// A CIFAR image: all red, then all green, then all blue.
pub(crate) fn planar(image: usize) -> Vec<u8> {
    let mut pixels = Vec::new();
    for channel in 0..3 {
        for row in 0..32 {
            pixels.extend((0..32).map(|column| pixel(image, row, column, channel)));
        }
    }
    pixels
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn tar_gz(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    gzip(&archive.into_inner().unwrap())
}

/// An idx file of bytes.
pub(crate) fn idx(axes: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, axes.len() as u8];
    bytes.extend(axes.iter().flat_map(|axis| axis.to_be_bytes()));
    bytes.extend_from_slice(data);
    bytes
}

pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

pub(crate) fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A pickle as Python 2 wrote CIFAR's: `data` and a list of labels.
pub(crate) fn pickled_batch(key: &str, rows: u8, data: &[u8], labels: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x80\x02}q\x00(".to_vec();
    bytes.extend_from_slice(b"U\x04dataq\x01cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85U\x01b\x87Rq\x04(K\x01K");
    bytes.push(rows);
    bytes.extend_from_slice(b"M\x00\x0c\x86cnumpy\ndtype\nq\x05U\x02u1K\x00K\x01\x87Rq\x06(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T");
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(b"tb");
    bytes.extend([b'U', key.len() as u8]);
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(b"](");
    bytes.extend(labels.iter().flat_map(|&label| [b'K', label]));
    bytes.extend_from_slice(b"eu.");
    bytes
}

/// A pickle of class names.
pub(crate) fn pickled_names(key: &str, names: &[String]) -> Vec<u8> {
    let mut bytes = vec![0x80, 2, b'}', b'U', key.len() as u8];
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(b"](");
    for name in names {
        bytes.extend([b'U', name.len() as u8]);
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes.extend_from_slice(b"es.");
    bytes
}

pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// A colour picture file of the kind that its ending says.
pub(crate) fn picture(folder: &Path, name: &str, image: usize, height: usize, width: usize) {
    let pixels = interleaved(&[image], height, width, 3);
    let picture = image::RgbImage::from_raw(width as u32, height as u32, pixels).unwrap();
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    picture.save(path).unwrap();
}
