//! GPU kernels of our own, compiled when they are first needed.
//!
//! NVRTC, which turns CUDA C++ into machine code, comes with the torch wheel: neither a build nor a
//! run needs CUDA installed. All functions called here are C functions of NVRTC, of the driver or
//! of libtorch, with the types of their headers.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use libloading::os::unix::{Library, Symbol};
use tch::Tensor;

use super::error::{Error, Result};
use super::libtorch_ffi::{cuda, open, symbol};

/// Threads of a block, in every kernel.
const THREADS: i64 = 256;
/// Names of the kernels in `normalise.cu`.
const NAMES: [&str; 7] =
    ["measure", "measured", "apply", "gather", "gather_around", "gathered", "spread"];

/// One argument of a kernel; all of them are eight bytes long.
#[derive(Clone, Copy)]
pub(super) enum Argument<'a> {
    /// Where a tensor's numbers lie.
    Tensor(&'a Tensor),
    /// The same, or a null pointer.
    Maybe(Option<&'a Tensor>),
    /// A number.
    Size(i64),
}

type Launch = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;

type Find = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int;

/// The kernels of `normalise.cu` on one GPU.
pub(super) struct Kernels {
    functions: BTreeMap<&'static str, *mut c_void>,
    launch: Symbol<Launch>,
    stream: Symbol<unsafe extern "C" fn(i32, *mut *mut c_void) -> i32>,
    device: i32,
    /// Blocks that keep the whole GPU busy.
    blocks: i64,
}

// SAFETY: a loaded function belongs to the process, not to a thread.
unsafe impl Send for Kernels {}

impl Kernels {
    /// Compiles the kernels for this GPU.
    pub(super) fn compile(device: usize) -> Result<Self> {
        let compiler = open("libcaffe2_nvrtc.so").map_err(|what| Error::Engine { what })?;
        open_builtins();
        let device = device as c_int;
        let attribute: Symbol<unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int> =
            symbol(&compiler, "cuDeviceGetAttribute")?;
        let ask = |which: c_int| -> Result<c_int> {
            let mut value = 0;
            // SAFETY: `cuDeviceGetAttribute(int *, CUdevice_attribute, CUdevice)`.
            done("cuDeviceGetAttribute", unsafe { attribute(&raw mut value, which, device) })?;
            Ok(value)
        };
        let (processors, major, minor) = (ask(16)?, ask(75)?, ask(76)?);
        let image = machine_code(&compiler, &format!("sm_{major}{minor}"))?;
        let load: Symbol<unsafe extern "C" fn(*mut *mut c_void, *const u8) -> c_int> =
            symbol(&compiler, "cuModuleLoadData")?;
        let find: Symbol<Find> = symbol(&compiler, "cuModuleGetFunction")?;
        let mut module = null_mut();
        // SAFETY: the image is whole machine code for this GPU; the module is never unloaded.
        done("cuModuleLoadData", unsafe { load(&raw mut module, image.as_ptr()) })?;
        let mut functions = BTreeMap::new();
        for name in NAMES {
            let (mut function, text) = (null_mut(), terminated(name)?);
            // SAFETY: the module is loaded, and the name ends with a zero.
            let status = unsafe { find(&raw mut function, module, text.as_ptr()) };
            done(name, status)?;
            functions.insert(name, function);
        }
        let launch = symbol(&compiler, "cuLaunchKernel")?;
        // Never closed: the functions found in it are used as long as the program runs.
        std::mem::forget(compiler);
        Ok(Self {
            functions,
            launch,
            stream: symbol(&cuda()?.1, "aoti_torch_get_current_cuda_stream")?,
            device,
            blocks: i64::from(processors) * 4,
        })
    }

    /// Whether the kernels can work on this many channels.
    pub(super) fn supports_channels(channels: usize) -> bool {
        channels.is_multiple_of(8) && (THREADS as usize).is_multiple_of(channels / 8)
    }

    /// Blocks for a walk over this many groups of eight numbers.
    pub(super) fn blocks(&self, eights: i64) -> i64 {
        ((eights + THREADS - 1) / THREADS).clamp(1, self.blocks)
    }

    /// Starts a kernel on libtorch's current stream.
    ///
    /// The caller passes what the kernel of that name takes: tensors of contiguous numbers of the
    /// right kind and size, which live on this GPU.
    pub(super) fn start(
        &self,
        name: &'static str,
        blocks: i64,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        let mut values: Vec<u64> = arguments.iter().map(|argument| argument.value()).collect();
        let mut places: Vec<*mut c_void> =
            values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        let mut stream = null_mut();
        // SAFETY: `aoti_torch_get_current_cuda_stream(int32_t, void **)`.
        done("stream", unsafe { (self.stream)(self.device, &raw mut stream) })?;
        // SAFETY: the function is loaded; each place points to eight bytes that live through the
        // call, in which the driver copies them.
        let status = unsafe {
            (self.launch)(
                self.functions[name],
                blocks as c_uint,
                1,
                1,
                THREADS as c_uint,
                1,
                1,
                0,
                stream,
                places.as_mut_ptr(),
                null_mut(),
            )
        };
        done(name, status)
    }
}

impl Argument<'_> {
    fn value(self) -> u64 {
        match self {
            Self::Tensor(tensor) | Self::Maybe(Some(tensor)) => tensor.data_ptr() as u64,
            Self::Maybe(None) => 0,
            Self::Size(size) => size as u64,
        }
    }
}

/// Machine code of `normalise.cu`.
fn machine_code(compiler: &Library, architecture: &str) -> Result<Vec<u8>> {
    type Text = *const c_char;
    type Create = unsafe extern "C" fn(
        *mut *mut c_void,
        Text,
        Text,
        c_int,
        *const Text,
        *const Text,
    ) -> c_int;
    type Compile = unsafe extern "C" fn(*mut c_void, c_int, *const Text) -> c_int;
    type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
    type Get = unsafe extern "C" fn(*mut c_void, *mut u8) -> c_int;
    let create: Symbol<Create> = symbol(compiler, "nvrtcCreateProgram")?;
    let compile: Symbol<Compile> = symbol(compiler, "nvrtcCompileProgram")?;
    let destroy: Symbol<unsafe extern "C" fn(*mut *mut c_void) -> c_int> =
        symbol(compiler, "nvrtcDestroyProgram")?;
    let sizes: [Symbol<Size>; 2] =
        [symbol(compiler, "nvrtcGetCUBINSize")?, symbol(compiler, "nvrtcGetProgramLogSize")?];
    let gets: [Symbol<Get>; 2] =
        [symbol(compiler, "nvrtcGetCUBIN")?, symbol(compiler, "nvrtcGetProgramLog")?];
    let source = terminated(include_str!("normalise.cu"))?;
    let (title, option) =
        (terminated("normalise.cu")?, terminated(&format!("--gpu-architecture={architecture}"))?);
    let mut program = null_mut();
    // SAFETY: the types are those of nvrtc.h, the texts end with a zero and live through the calls,
    // and each buffer has the size that NVRTC asked for.
    unsafe {
        let status = create(&raw mut program, source.as_ptr(), title.as_ptr(), 0, null(), null());
        done("nvrtcCreateProgram", status)?;
        let status = compile(program, 1, [option.as_ptr()].as_ptr());
        let failed = usize::from(status != 0);
        let mut size = 0;
        done("nvrtc", sizes[failed](program, &raw mut size))?;
        let mut bytes = vec![0; size];
        done("nvrtc", gets[failed](program, bytes.as_mut_ptr()))?;
        destroy(&raw mut program);
        if status == 0 {
            return Ok(bytes);
        }
        Err(Error::Engine { what: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

/// Opens what NVRTC itself opens by name: it lies beside it, where the system need not look.
fn open_builtins() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let named = |path: &Path, start: &str| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    let beside = paths.filter(|path| named(path, "libnvrtc.so")).find_map(|path| path.parent());
    let files = beside.and_then(|folder| std::fs::read_dir(folder).ok());
    for file in files.into_iter().flatten().flatten() {
        let path = file.path();
        if named(&path, "libnvrtc-builtins.so") {
            // Without it NVRTC looks for itself, and says so if it fails. It must stay open.
            let _ = open(&path.to_string_lossy()).map(std::mem::forget);
        }
    }
}

fn terminated(text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| Error::Engine { what: error.to_string() })
}

/// An error where a call did not return 0.
fn done(what: &str, status: c_int) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    Err(Error::Engine { what: format!("{what}: error {status} of the GPU") })
}
