//! Small ONNX files, written by hand: fields of protocol buffers.

/// A field that holds bytes.
pub(crate) fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(content);
    out
}

/// A field that holds a number below 128.
pub(crate) fn small(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

/// A tensor's name, element type and dimensions; 0 is an open dimension.
pub(crate) fn value(name: &str, element: u8, dimensions: &[u8]) -> Vec<u8> {
    let dimension = |(axis, &size): (usize, &u8)| match size {
        0 => field(1, &field(2, format!("axis{axis}").as_bytes())),
        size => field(1, &small(1, size)),
    };
    let shape: Vec<u8> = dimensions.iter().enumerate().flat_map(dimension).collect();
    let tensor = [small(1, element), field(2, &shape)].concat();
    [field(1, name.as_bytes()), field(2, &field(1, &tensor))].concat()
}

/// An operator without attributes.
pub(crate) fn node(operator: &str, input: &str, output: &str) -> Vec<u8> {
    let names = [field(1, input.as_bytes()), field(2, output.as_bytes())].concat();
    [names, field(4, operator.as_bytes())].concat()
}

/// A weight of one 32-bit float; `place` holds its bytes or says where they are.
pub(crate) fn weight(name: &str, place: &[u8]) -> Vec<u8> {
    [small(1, 1), small(2, 1), field(8, name.as_bytes()), place.to_vec()].concat()
}

/// A file with the fields of one graph, of operator set 17.
pub(crate) fn file(graph: &[u8]) -> Vec<u8> {
    [small(1, 8), field(7, graph), field(8, &small(2, 17))].concat()
}

/// A file of operators, inputs and outputs.
pub(crate) fn model(nodes: &[Vec<u8>], inputs: &[Vec<u8>], outputs: &[Vec<u8>]) -> Vec<u8> {
    let each = |number: u8, messages: &[Vec<u8>]| -> Vec<u8> {
        messages.iter().flat_map(|message| field(number, message)).collect()
    };
    file(&[each(1, nodes), each(11, inputs), each(12, outputs)].concat())
}

/// One operator between an input of these dimensions and an output of open ones.
pub(crate) fn single(operator: &str, dimensions: &[u8]) -> Vec<u8> {
    let output = field(1, b"out");
    model(&[node(operator, "in", "out")], &[value("in", 1, dimensions)], &[output])
}
