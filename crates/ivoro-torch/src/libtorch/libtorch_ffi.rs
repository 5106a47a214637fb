//! What `tch` does not reach: opening libtorch's CUDA part, repeatable cuDNN, Adam in one kernel,
//! and CUDA graphs. All of it are C++ functions of libtorch, called under their mangled names.
//!
//! The names and types are those of the libtorch that `tch` is bound to. A name that is missing is
//! an error or switches the feature off; it is never guessed.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use tch::{Device, Kind, Tensor};

use super::error::{Error, Result};

/// The parts of libtorch, opened once and never closed: threads of theirs may still run.
struct Parts {
    processor: Library,
    cuda: Option<(Library, Library)>,
}

static PARTS: OnceLock<std::result::Result<Parts, String>> = OnceLock::new();

fn parts() -> Result<&'static Parts> {
    let parts = PARTS.get_or_init(|| {
        let processor = open("libtorch_cpu.so")?;
        let cuda = match (open("libc10_cuda.so"), open("libtorch_cuda.so")) {
            (Ok(streams), Ok(kernels)) => Some((streams, kernels)),
            _ => None,
        };
        Ok(Parts { processor, cuda })
    });
    parts.as_ref().map_err(|what| Error::Engine { what: what.clone() })
}

pub(super) fn open(name: &str) -> std::result::Result<Library, String> {
    // SAFETY: these are the libraries this program is linked to or a part of the same release;
    // their initialisers only register operators.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) }.map_err(|error| error.to_string())
}

/// Opens the CUDA part, so that libtorch finds its GPU kernels.
pub(super) fn load_cuda() -> Result<()> {
    if parts()?.cuda.is_some() {
        return Ok(());
    }
    let found = open("libtorch_cuda.so").err().unwrap_or_default();
    Err(ivoro_vision::Error::NoDevice { asked: "cuda".to_owned(), found }.into())
}

/// The libraries with the GPU's streams and with its kernels.
pub(super) fn cuda() -> Result<&'static (Library, Library)> {
    let missing = || Error::Engine { what: "libtorch's CUDA part is not open".to_owned() };
    parts()?.cuda.as_ref().ok_or_else(missing)
}

/// Makes a GPU the current one of this thread: cuDNN, graphs and kernels of our own go by that.
pub(super) fn make_current(index: i32) -> Result<()> {
    let guard: Symbol<unsafe extern "C" fn(i32, *mut *mut c_void) -> i32> =
        symbol(&cuda()?.1, "aoti_torch_create_cuda_guard")?;
    let mut handle = std::ptr::null_mut();
    // SAFETY: the type is the one in libtorch's header shim.h. The guard is never deleted: that
    // would bring back the GPU that was current before.
    if unsafe { guard(index, &raw mut handle) } == 0 {
        return Ok(());
    }
    Err(Error::Engine { what: format!("cuda:{index} can't be made the current GPU") })
}

/// Waits until the GPU has done all that it was told, if there is one.
pub fn synchronise() {
    if tch::Cuda::is_available() {
        tch::Cuda::synchronize(0);
    }
}

pub(super) fn symbol<T>(library: &Library, name: &str) -> Result<Symbol<T>> {
    // SAFETY: each caller names a function together with the type it has in libtorch's headers.
    unsafe { library.get(name.as_bytes()) }
        .map_err(|_| Error::Engine { what: format!("libtorch has no {name}") })
}

type Empty =
    unsafe extern "C" fn(i64, *const i64, *const i64, i32, i32, i32, *mut *mut c_void) -> i32;

/// The values on the device. A GPU takes them when it is done with what it was told before; nobody
/// waits for that, because they lie in memory that it reads by itself.
pub(super) fn sent<T: tch::kind::Element + Copy>(values: &[T], device: Device) -> Result<Tensor> {
    if !device.is_cuda() || values.is_empty() {
        return Ok(Tensor::f_from_slice(values)?.f_to_device(device)?);
    }
    let empty: Symbol<Empty> = symbol(&parts()?.processor, "aoti_torch_empty_strided_pinned")?;
    let (bytes, stride) = (size_of_val(values) as i64, 1i64);
    let mut made = std::ptr::null_mut();
    // SAFETY: the type is the one in libtorch's header shim.h; the zeros are the codes of bytes and
    // of the CPU's memory. The new tensor is ours and has room for the values.
    unsafe {
        if empty(1, &raw const bytes, &raw const stride, 0, 0, 0, &raw mut made) != 0 {
            return Err(Error::Engine { what: "no memory that a GPU can read".to_owned() });
        }
        let pinned = Tensor::from_ptr(made.cast());
        values.as_ptr().copy_to_nonoverlapping(pinned.data_ptr().cast(), values.len());
        let there = pinned.f_to_device_(device, Kind::Uint8, true, false)?;
        Ok(there.f_view_dtype(T::KIND)?)
    }
}

/// Makes cuDNN choose kernels that give the same result every time.
pub(super) fn set_deterministic() {
    // Without it training still works; only its last digits may differ between runs.
    let _ = set("_ZN2at7Context21setDeterministicCuDNNEb", true);
}

/// Has convolutions of 32-bit numbers computed in 32 bits: cuDNN would round them to 19 (TF32).
pub(super) fn keep_32_bits() -> Result<()> {
    set("_ZN2at7Context17setAllowTF32CuDNNEb", false)
}

/// Switches something of libtorch on or off.
fn set(name: &str, value: bool) -> Result<()> {
    let library = &parts()?.processor;
    let context: Symbol<unsafe extern "C" fn() -> *mut c_void> =
        symbol(library, "_ZN2at13globalContextEv")?;
    let set: Symbol<unsafe extern "C" fn(*mut c_void, bool)> = symbol(library, name)?;
    // SAFETY: `Context& globalContext()`, and `void Context::NAME(bool)` for each name above.
    unsafe { set(context(), value) };
    Ok(())
}

/// `c10::ArrayRef<at::Tensor>`: where the tensors lie and how many there are.
#[repr(C)]
#[derive(Clone, Copy)]
struct TensorList {
    data: *const c_void,
    length: usize,
}

impl TensorList {
    /// A list of one. A `tch` tensor points to an `at::Tensor`.
    fn of(tensor: &Tensor) -> Self {
        Self { data: tensor.as_ptr().cast(), length: 1 }
    }

    const EMPTY: Self = Self { data: std::ptr::null(), length: 0 };
}

/// `std::optional<at::Tensor>` without a value: the flag behind the pointer is zero.
type NoTensor = [usize; 2];

type FusedAdam = unsafe extern "C" fn(
    TensorList,
    TensorList,
    TensorList,
    TensorList,
    TensorList,
    TensorList,
    *const c_void,
    f64,
    f64,
    f64,
    f64,
    bool,
    bool,
    *const NoTensor,
    *const NoTensor,
);

/// Adam's change of all weights in one kernel. The rate is a tensor, so that a captured step sees
/// its new values.
pub(super) struct Adam {
    call: Symbol<FusedAdam>,
}

impl Adam {
    pub(super) fn find() -> Result<Self> {
        let name = "_ZN2at4_ops22_fused_adam__tensor_lr4callEN3c108ArrayRefINS_6TensorEEES5_S5_\
                    S5_S5_S5_RKS4_ddddbbRKSt8optionalIS4_ESB_";
        Ok(Self { call: symbol(&parts()?.processor, name)? })
    }

    /// `steps` is a tensor of one 32-bit number: how many steps were done, this one included.
    pub(super) fn step(
        &self,
        weights: &Tensor,
        gradient: &Tensor,
        moments: (&Tensor, &Tensor),
        steps: &Tensor,
        rate: &Tensor,
        decay: f64,
    ) {
        let none: NoTensor = [0, 0];
        // SAFETY: `_fused_adam_(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
        // lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf)`; all
        // tensors live through the call, are of one size, 32-bit and on one device.
        unsafe {
            (self.call)(
                TensorList::of(weights),
                TensorList::of(gradient),
                TensorList::of(moments.0),
                TensorList::of(moments.1),
                TensorList::EMPTY,
                TensorList::of(steps),
                rate.as_ptr().cast(),
                super::trainer::BETAS.0,
                super::trainer::BETAS.1,
                decay,
                super::trainer::EPSILON,
                false,
                false,
                &raw const none,
                &raw const none,
            );
        }
    }
}

/// `c10::cuda::CUDAStream`: device type and index, then an id.
#[repr(C)]
#[derive(Clone, Copy)]
struct Stream {
    device: [i8; 2],
    id: i64,
}

/// `std::pair<unsigned long long, unsigned long long>`.
#[repr(C)]
struct Pool(u64, u64);

type Get = unsafe extern "C" fn(bool, i8) -> Stream;
type Current = unsafe extern "C" fn(i8) -> Stream;
type Set = unsafe extern "C" fn(Stream);

/// Room for an `at::cuda::CUDAGraph`, which is far smaller.
type GraphRoom = [MaybeUninit<u64>; 1024];

/// A recorded sequence of GPU kernels that is replayed as one.
pub(super) struct Graph {
    device: i8,
    room: Box<GraphRoom>,
    replay: Symbol<unsafe extern "C" fn(*mut c_void)>,
    delete: Symbol<unsafe extern "C" fn(*mut c_void)>,
}

impl Graph {
    /// Records `work`, which is not done by that. It must do the same each time, on tensors that
    /// stay where they are.
    pub(super) fn record(device: i8, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        let (streams, kernels) = cuda()?;
        let get: Symbol<Get> = symbol(streams, "_ZN3c104cuda17getStreamFromPoolEba")?;
        let current: Symbol<Current> = symbol(streams, "_ZN3c104cuda20getCurrentCUDAStreamEa")?;
        let set: Symbol<Set> =
            symbol(streams, "_ZN3c104cuda20setCurrentCUDAStreamENS0_10CUDAStreamE")?;
        let make: Symbol<unsafe extern "C" fn(*mut c_void, bool)> =
            symbol(kernels, "_ZN2at4cuda9CUDAGraphC1Eb")?;
        let begin: Symbol<unsafe extern "C" fn(*mut c_void, Pool, i32)> = symbol(
            kernels,
            "_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode",
        )?;
        let end: Symbol<unsafe extern "C" fn(*mut c_void)> =
            symbol(kernels, "_ZN2at4cuda9CUDAGraph11capture_endEv")?;
        let replay = symbol(kernels, "_ZN2at4cuda9CUDAGraph6replayEv")?;
        let delete = symbol(kernels, "_ZN2at4cuda9CUDAGraphD1Ev")?;
        let mut room: Box<GraphRoom> = Box::new([MaybeUninit::zeroed(); 1024]);
        let made: *mut c_void = room.as_mut_ptr().cast();
        tch::Cuda::synchronize(device.into());
        // SAFETY: the signatures are those of libtorch's headers; the streams are plain values.
        // The graph is made in zeroed room of its own that outlives it, and the stream that was
        // current becomes current again on every way out.
        let (graph, outcome) = unsafe {
            let before = current(device);
            set(get(false, device));
            make(made, false);
            let graph = Self { device, room, replay, delete };
            begin(made, Pool(0, 0), RELAXED);
            let outcome = work();
            end(made);
            set(before);
            (graph, outcome)
        };
        tch::Cuda::synchronize(device.into());
        outcome.map(|()| graph)
    }

    /// Does the recorded work again.
    pub(super) fn replay(&mut self) {
        // SAFETY: `room` holds a graph whose capture has ended.
        unsafe { (self.replay)(self.room.as_mut_ptr().cast()) };
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // It may still run. A GPU that has failed makes `tch` panic; then the error that is on its
        // way says more than this could, and there is nothing left to give back.
        let device = i64::from(self.device);
        if std::panic::catch_unwind(|| tch::Cuda::synchronize(device)).is_ok() {
            // SAFETY: `room` holds a graph that nothing uses after this. Its destructor gives back
            // the memory that was taken during the recording.
            unsafe { (self.delete)(self.room.as_mut_ptr().cast()) };
        }
    }
}

/// `cudaStreamCaptureModeRelaxed`: autograd's own thread takes part in the recording.
const RELAXED: i32 = 2;
