//! libfabric, loaded while the program runs, and what its providers offer.
//!
//! Used by [`super::provider`] and [`super::endpoint`]. Invariant: the library is loaded at most
//! once and stays loaded, so its functions may be called at any time.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::mem::transmute;
use core::ptr::{self, NonNull};
use std::sync::OnceLock;

use super::bindings::*;
use sys::library::{self, Library};
use sys::signal;

/// The name by which the system finds the library.
const NAME: &CStr = c"libfabric.so.1";

type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const FiInfo,
    *mut *mut FiInfo,
) -> c_int;

/// See the head of this file.
pub(super) struct Libfabric {
    getinfo: GetInfo,
    freeinfo: unsafe extern "C" fn(*mut FiInfo),
    dupinfo: unsafe extern "C" fn(*const FiInfo) -> *mut FiInfo,
    fabric: unsafe extern "C" fn(*mut FiFabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: u32,
    file: String,
}

/// A call of libfabric has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OfiError {
    /// The call.
    pub(super) call: &'static str,
    /// Its error number, positive.
    pub(super) number: c_int,
    /// The same for people.
    pub(super) text: String,
}

impl fmt::Display for OfiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.text)
    }
}

impl Libfabric {
    /// The library.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn get() -> Result<&'static Libfabric, &'static str> {
        static ONCE: OnceLock<Result<Libfabric, String>> = OnceLock::new();
        ONCE.get_or_init(Libfabric::load).as_ref().map_err(String::as_str)
    }

    fn load() -> Result<Libfabric, String> {
        // A library that Debian's libfabric needs takes over SIGSEGV, SIGABRT, SIGINT and SIGTERM.
        let library = signal::with_kept_actions(|| Library::load(NAME))?;
        // The layout of `FiInfo` belongs to these versions of the functions.
        let function = |name: &CStr, version: &CStr| {
            library.function_of_version(name, version).ok_or_else(|| {
                let (name, version) = (name.to_string_lossy(), version.to_string_lossy());
                format!("it has no {name} of {version}: it is older than 1.17")
            })
        };
        let getinfo = function(c"fi_getinfo", c"FABRIC_1.3")?;
        let freeinfo = function(c"fi_freeinfo", c"FABRIC_1.3")?;
        let dupinfo = function(c"fi_dupinfo", c"FABRIC_1.3")?;
        let fabric = function(c"fi_fabric", c"FABRIC_1.1")?;
        let strerror = function(c"fi_strerror", c"FABRIC_1.0")?;
        let version = function(c"fi_version", c"FABRIC_1.0")?;
        // SAFETY: the function of this name has no arguments and returns a number of 32 bits.
        let version =
            unsafe { transmute::<NonNull<c_void>, unsafe extern "C" fn() -> u32>(version)() };
        if version < API_VERSION {
            let (major, minor) = (version >> 16, version & 0xffff);
            return Err(format!("it has version {major}.{minor}, 1.17 is needed"));
        }
        let file = library::file_at(getinfo.addr().get()).unwrap_or_default();
        // SAFETY: the types are those of the functions of these names and versions.
        unsafe {
            Ok(Libfabric {
                getinfo: transmute::<NonNull<c_void>, GetInfo>(getinfo),
                freeinfo: transmute::<NonNull<c_void>, unsafe extern "C" fn(*mut FiInfo)>(
                    freeinfo,
                ),
                dupinfo: transmute::<
                    NonNull<c_void>,
                    unsafe extern "C" fn(*const FiInfo) -> *mut FiInfo,
                >(dupinfo),
                fabric: transmute::<
                    NonNull<c_void>,
                    unsafe extern "C" fn(
                        *mut FiFabricAttr,
                        *mut *mut FidFabric,
                        *mut c_void,
                    ) -> c_int,
                >(fabric),
                strerror: transmute::<NonNull<c_void>, unsafe extern "C" fn(c_int) -> *const c_char>(
                    strerror,
                ),
                version,
                file,
            })
        }
    }

    /// The version of the library, and the file that it was loaded from.
    pub(super) fn description(&self) -> String {
        format!("{}.{} of {}", self.version >> 16, self.version & 0xffff, self.file)
    }

    /// The error of a call that returned this.
    pub(super) fn error(&self, call: &'static str, returned: c_int) -> OfiError {
        let number = returned.saturating_abs();
        // SAFETY: the call takes any number; the text is constant.
        let text = unsafe { (self.strerror)(number) };
        let text = match text.is_null() {
            true => format!("error {number}"),
            // SAFETY: not null, so it is NUL-terminated.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        OfiError { call, number, text }
    }

    /// What there is for messages between hosts, the best first as libfabric sees it. `source`: an
    /// address of this host in figures, and a port, that it must have. `access`: what else it must
    /// have. `contexts`: most of an endpoint; if more than 1, several threads call it at once.
    ///
    /// # Errors
    /// That of `fi_getinfo`.
    pub(super) fn find(
        &'static self,
        source: Option<(&CStr, Option<&CStr>)>,
        access: MemoryAccess,
        contexts: usize,
    ) -> Result<Vec<ProviderInfo>, OfiError> {
        // SAFETY: for null it makes a new structure.
        let hints = unsafe { (self.dupinfo)(ptr::null()) };
        let of = |info| ProviderInfo { library: self, info, access, most_contexts: contexts };
        let Some(hints) = NonNull::new(hints).map(of) else {
            return Err(self.error("fi_dupinfo", -12));
        };
        // SAFETY: a new structure has all its attributes, and nothing else names it.
        unsafe {
            let hints = &mut *hints.info.as_ptr();
            hints.caps = FI_TAGGED | FI_SEND | FI_RECV | FI_REMOTE_COMM;
            if contexts > 1 {
                hints.caps |= FI_NAMED_RX_CTX;
            }
            hints.mode = FI_CONTEXT | FI_CONTEXT2;
            (*hints.ep_attr).kind = FI_EP_RDM;
            (*hints.domain_attr).threading = match contexts {
                1 => FI_THREAD_DOMAIN,
                _ => FI_THREAD_SAFE,
            };
            (*hints.domain_attr).resource_mgmt = FI_RM_ENABLED;
            (*hints.domain_attr).mr_mode =
                FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
            if access != MemoryAccess::None {
                hints.caps |= FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
                // That it can. Each put says so itself.
                (*hints.tx_attr).op_flags = FI_DELIVERY_COMPLETE;
            }
            if access == MemoryAccess::Basic {
                (*hints.domain_attr).mr_mode = FI_MR_BASIC;
            }
        }
        let (mut node, mut service, mut flags) = (ptr::null(), ptr::null(), 0);
        if let Some((address, port)) = source {
            node = address.as_ptr();
            service = port.map_or(ptr::null(), CStr::as_ptr);
            flags = FI_SOURCE | FI_NUMERICHOST;
        }
        let mut first = ptr::null_mut();
        // Providers are loaded here.
        let returned = signal::with_kept_actions(|| {
            // SAFETY: NUL-terminated texts or null, hints of the library's making, room for a
            // pointer.
            unsafe {
                (self.getinfo)(API_VERSION, node, service, flags, hints.info.as_ptr(), &mut first)
            }
        });
        match returned {
            0 => {}
            n if n == -FI_ENODATA => return Ok(Vec::new()),
            n => return Err(self.error("fi_getinfo", n)),
        }
        let mut found = Vec::new();
        let mut next = first;
        while let Some(info) = NonNull::new(next) {
            // SAFETY: an element of the list, which is alive until it is freed below.
            let copy = unsafe { (self.dupinfo)(info.as_ptr()) };
            // SAFETY: as above.
            next = unsafe { (*info.as_ptr()).next };
            found.extend(NonNull::new(copy).map(of));
        }
        // SAFETY: the list is freed once, and the copies are their own.
        unsafe { (self.freeinfo)(first) };
        found.retain(ProviderInfo::is_complete);
        for provider in &found {
            let (info, contexts) = (provider.info.as_ptr(), provider.contexts());
            // SAFETY: a copy of its own, with these attributes, that nothing else uses.
            unsafe {
                (*(*info).tx_attr).op_flags = 0;
                if contexts > 1 {
                    (*(*info).ep_attr).tx_ctx_cnt = contexts;
                    (*(*info).ep_attr).rx_ctx_cnt = contexts;
                }
            }
        }
        Ok(found)
    }

    /// Opens the fabric of a provider.
    ///
    /// # Errors
    /// That of `fi_fabric`.
    pub(super) fn open_fabric(&self, info: &ProviderInfo) -> Result<NonNull<FidFabric>, OfiError> {
        let mut fabric = ptr::null_mut();
        // SAFETY: a complete structure has these attributes; room for a pointer.
        let returned =
            unsafe { (self.fabric)(info.raw().fabric_attr, &mut fabric, ptr::null_mut()) };
        match NonNull::new(fabric) {
            Some(fabric) if returned == 0 => Ok(fabric),
            _ => Err(self.error("fi_fabric", returned)),
        }
    }
}

/// What a provider must offer in the memory of peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryAccess {
    /// Nothing.
    None,
    /// Puts and gets.
    Any,
    /// Those, with the registration of older networks: FI_MR_BASIC.
    Basic,
}

/// What a provider offers on one interface of the network.
pub(super) struct ProviderInfo {
    access: MemoryAccess,
    most_contexts: usize,
    library: &'static Libfabric,
    info: NonNull<FiInfo>,
}

// SAFETY: the structure belongs to this value alone, and no thread of the library uses it.
unsafe impl Send for ProviderInfo {}

impl Drop for ProviderInfo {
    fn drop(&mut self) {
        // SAFETY: made by fi_dupinfo for this value, and freed once.
        unsafe { (self.library.freeinfo)(self.info.as_ptr()) }
    }
}

impl ProviderInfo {
    /// The structure of the library.
    pub(super) fn raw(&self) -> &FiInfo {
        // SAFETY: it is alive as long as this value, and written by nothing.
        unsafe { self.info.as_ref() }
    }

    /// The same for calls of the library, which do not write it.
    pub(super) fn raw_mut(&self) -> *mut FiInfo {
        self.info.as_ptr()
    }

    pub(super) fn library(&self) -> &'static Libfabric {
        self.library
    }

    /// Whether puts and gets in the memory of peers are possible.
    pub(super) fn has_remote_access(&self) -> bool {
        self.access != MemoryAccess::None
    }

    /// How many transmit and receive contexts an endpoint of it may have, so that several threads
    /// use them at once. 1: that of an endpoint that is not scalable.
    pub(super) fn contexts(&self) -> usize {
        let domain = self.domain();
        // A region of memory would belong to one context.
        let is_bound = domain.mr_mode & FI_MR_ENDPOINT != 0;
        let most = if is_bound { 1 } else { self.most_contexts };
        domain.max_ep_tx_ctx.min(domain.max_ep_rx_ctx).clamp(1, most)
    }

    fn is_complete(&self) -> bool {
        let FiInfo { tx_attr, rx_attr, ep_attr, domain_attr, fabric_attr, .. } = *self.raw();
        !(tx_attr.is_null()
            || rx_attr.is_null()
            || ep_attr.is_null()
            || domain_attr.is_null()
            || fabric_attr.is_null())
    }

    pub(super) fn tx(&self) -> &FiTxAttr {
        // SAFETY: not null (`is_complete`), and alive as long as this value.
        unsafe { &*self.raw().tx_attr }
    }

    pub(super) fn rx(&self) -> &FiRxAttr {
        // SAFETY: as above.
        unsafe { &*self.raw().rx_attr }
    }

    pub(super) fn endpoint(&self) -> &FiEpAttr {
        // SAFETY: as above.
        unsafe { &*self.raw().ep_attr }
    }

    pub(super) fn domain(&self) -> &FiDomainAttr {
        // SAFETY: as above.
        unsafe { &*self.raw().domain_attr }
    }

    fn fabric(&self) -> &FiFabricAttr {
        // SAFETY: as above.
        unsafe { &*self.raw().fabric_attr }
    }

    /// Its name, such as `tcp;ofi_rxm`.
    pub(super) fn name(&self) -> String {
        text(self.fabric().prov_name)
    }

    /// The name of the interface.
    pub(super) fn interface(&self) -> String {
        text(self.domain().name)
    }

    /// Its version, as it counts.
    pub(super) fn version(&self) -> (u32, u32) {
        let version = self.fabric().prov_version;
        (version >> 16, version & 0xffff)
    }

    /// Whether processes are addressed by IP addresses.
    pub(super) fn is_ip(&self) -> bool {
        // FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6.
        matches!(self.raw().addr_format, 1..=3)
    }
}

/// A text of a structure of the library.
fn text(text: *const c_char) -> String {
    match text.is_null() {
        true => String::new(),
        // SAFETY: the texts of the library's structures are NUL-terminated; it is copied at once.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
    .trim()
    .to_owned()
}
