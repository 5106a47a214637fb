//! Tests of the reader of pickled arrays.

use super::*;

// pickle.dumps({'data': np.arange(6, dtype=np.uint8).reshape(2, 3), 'labels': [3, -7],
// 'names': ['a', 'b']}, protocol), NumPy 2.4.6.
const PROTOCOL_3: &[u8] = b"\x80\x03}q\x00(X\x04\x00\x00\x00dataq\x01cnumpy._core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85q\x04C\x01bq\x05\x87q\x06Rq\x07(K\x01K\x02K\x03\x86q\x08cnumpy\ndtype\nq\tX\x02\x00\x00\x00u1q\n\x89\x88\x87q\x0bRq\x0c(K\x03X\x01\x00\x00\x00|q\rNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x0eb\x89C\x06\x00\x01\x02\x03\x04\x05q\x0ftq\x10bX\x06\x00\x00\x00labelsq\x11]q\x12(K\x03J\xf9\xff\xff\xffeX\x05\x00\x00\x00namesq\x13]q\x14(X\x01\x00\x00\x00aq\x15X\x01\x00\x00\x00bq\x16eu.";
const PROTOCOL_4: &[u8] = b"\x80\x04\x95\xc4\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x04data\x94\x8c\x16numpy._core.multiarray\x94\x8c\x0c_reconstruct\x94\x93\x94\x8c\x05numpy\x94\x8c\x07ndarray\x94\x93\x94K\x00\x85\x94C\x01b\x94\x87\x94R\x94(K\x01K\x02K\x03\x86\x94h\x05\x8c\x05dtype\x94\x93\x94\x8c\x02u1\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t\x94b\x89C\x06\x00\x01\x02\x03\x04\x05\x94t\x94b\x8c\x06labels\x94]\x94(K\x03J\xf9\xff\xff\xffe\x8c\x05names\x94]\x94(\x8c\x01a\x94\x8c\x01b\x94eu.";
const PROTOCOL_5: &[u8] = b"\x80\x05\x95\xaf\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x04data\x94\x8c\x13numpy._core.numeric\x94\x8c\x0b_frombuffer\x94\x93\x94(\x96\x06\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x94\x8c\x05numpy\x94\x8c\x05dtype\x94\x93\x94\x8c\x02u1\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t\x94bK\x02K\x03\x86\x94\x8c\x01C\x94t\x94R\x94\x8c\x06labels\x94]\x94(K\x03J\xf9\xff\xff\xffe\x8c\x05names\x94]\x94(\x8c\x01a\x94\x8c\x01b\x94eu.";

#[test]
fn reads_what_python_3_writes() {
    for bytes in [PROTOCOL_3, PROTOCOL_4, PROTOCOL_5] {
        let pickle = Pickle::parse(bytes).unwrap();
        let expected = ByteMatrix { rows: 2, columns: 3, bytes: &[0, 1, 2, 3, 4, 5] };
        assert_eq!(pickle.matrix("data").unwrap(), expected);
        assert_eq!(pickle.integers("labels").unwrap(), [3, -7]);
        assert_eq!(pickle.texts("names").unwrap(), ["a", "b"]);
        assert_eq!(pickle.integers("data2").unwrap_err(), "the dictionary has no data2");
        assert!(pickle.matrix("labels").is_err());
        assert!(pickle.integers("names").is_err());
        assert!(pickle.texts("labels").is_err());
    }
}

#[test]
fn every_prefix_and_every_changed_byte_is_an_error_or_a_value() {
    for bytes in [PROTOCOL_3, PROTOCOL_4, PROTOCOL_5] {
        for end in 0..bytes.len() {
            assert!(Pickle::parse(&bytes[..end]).is_err(), "cut at {end}");
        }
        let mut changed = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in 0..=255 {
                changed[at] = value;
                if let Ok(pickle) = Pickle::parse(&changed) {
                    let _ =
                        (pickle.matrix("data"), pickle.integers("labels"), pickle.texts("names"));
                }
            }
            changed[at] = bytes[at];
        }
    }
}

#[test]
fn integers_of_any_length_keep_their_sign() {
    let long = |bytes: &[u8]| {
        let mut program = b"}U\x01a](".to_vec();
        program.extend([0x8a, bytes.len() as u8]);
        program.extend_from_slice(bytes);
        program.extend_from_slice(b"es.");
        Pickle::parse(&program).and_then(|pickle| pickle.integers("a"))
    };
    assert_eq!(long(&[]), Ok(vec![0]));
    assert_eq!(long(&[0xff]), Ok(vec![-1]));
    assert_eq!(long(&[0x00, 0x01]), Ok(vec![256]));
    assert_eq!(long(&[0xff; 8]), Ok(vec![-1]));
    assert!(long(&[1; 9]).is_err());
}

#[test]
fn what_is_shared_a_billion_times_takes_no_memory() {
    // a = [], then sixty times a = [a, a]: 2^60 leaves if copied.
    let mut program = b"}U\x04data]".to_vec();
    for _ in 0..60 {
        program.extend_from_slice(b"q\x000](h\x00h\x00e");
    }
    program.extend_from_slice(b"s.");
    let pickle = Pickle::parse(&program).unwrap();
    assert!(pickle.matrix("data").is_err());
}

#[test]
fn a_million_lists_in_each_other_do_not_overflow_the_stack() {
    let depth = 1_000_000;
    let program = [b"]".repeat(depth), b"a".repeat(depth - 1), b".".to_vec()].concat();
    assert!(Pickle::parse(&program).unwrap().field("data").is_err());
}

#[test]
fn a_list_that_holds_itself_is_no_endless_loop() {
    let pickle = Pickle::parse(b"}q\x00U\x04datah\x00s.").unwrap();
    assert!(pickle.matrix("data").is_err());
}

#[test]
fn a_call_is_never_made() {
    let program = b"cos\nsystem\n(U\x04truetR.";
    assert!(Pickle::parse(program).unwrap().field("data").is_err());
}

#[test]
fn a_string_longer_than_the_file_is_refused() {
    let error = Pickle::parse(b"\x80\x02T\xff\xff\xff\xffabc.").unwrap_err();
    assert_eq!(error, "byte 7: 4294967295 more bytes are promised, the file has 4");
}

#[test]
fn a_tuple_takes_nothing_from_below_a_mark() {
    for program in [&b"]]((\x87d."[..], b"]](\x86l.", b"](]\x87."] {
        let error = Pickle::parse(program).map(|_| ()).unwrap_err();
        assert!(error.contains("nothing is on the stack"), "{error}");
    }
    assert!(Pickle::parse(b"(]]]\x87l.").is_ok());
}
