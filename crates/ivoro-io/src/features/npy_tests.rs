//! Tests of the header of `.npy` files.

use super::*;

fn parsed(text: &str) -> Result<Header, String> {
    Header::parse(text)
}

#[test]
fn the_header_numpy_writes() {
    // numpy.lib.format.header_data_from_array_1_0(numpy.zeros((3, 2, 5), '<f2')) and, for the
    // second, numpy.zeros((4,), '>U7').
    let header =
        parsed("{'descr': '<f2', 'fortran_order': False, 'shape': (3, 2, 5), }   \n").unwrap();
    let shape = vec![3, 2, 5];
    let expected = Header { element: Element::F16, big_endian: false, fortran: false, shape };
    assert_eq!(header, expected);
    let header = parsed("{'descr': '>U7', 'fortran_order': True, 'shape': (4,), }\n").unwrap();
    let element = Element::Unicode { characters: 7 };
    assert_eq!(header, Header { element, big_endian: true, fortran: true, shape: vec![4] });
}

#[test]
fn a_scalar_has_no_axes() {
    let header = parsed("{'descr': '|b1', 'fortran_order': False, 'shape': ()}").unwrap();
    assert_eq!(header.shape, [0_usize; 0]);
    assert_eq!(header.element, Element::Integer { bytes: 1, signed: false });
}

#[test]
fn forged_headers_are_refused() {
    for text in [
        "",
        "{",
        "{}",
        "[]",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 'x'}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<c16', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<é', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': 'é', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
    ] {
        assert!(parsed(text).is_err(), "{text}");
    }
}

#[test]
fn more_axes_than_numpy_has_are_refused() {
    let axes = "1,".repeat(65);
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({axes})}}");
    assert!(parsed(&text).unwrap_err().contains("more than 64 axes"));
}

#[test]
fn a_header_longer_than_the_file_is_refused() {
    for bytes in [
        &b"\x93NUMPY"[..],
        b"\x93NUMPY\x01",
        b"\x93NUMPY\x01\x00\x76",
        b"\x93NUMPY\x01\x00\xff\xff{'descr'",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'",
        b"\x93NUMPY\x03\x00\x00\x00",
        b"\x93NUMPY\x09\x00\x04\x00{}  ",
        b"\x93NUMPY\x01\x00\x02\x00\xff\xfe",
    ] {
        assert!(header(bytes).is_err(), "{bytes:?}");
    }
}
