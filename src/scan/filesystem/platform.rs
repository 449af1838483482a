//! Telling the platform from several signs.
//!
//! Every single sign misleads somewhere: a container on Docker Desktop sees a kernel named `microsoft`, a self-built
//! WSL kernel has another name, a virtual machine made from a container image keeps its `/.dockerenv`, a live system
//! has an overlay as its root. So signs are counted for and against, and one alone decides nothing, with one exception:
//! a root of type `lxfs` or `wslfs` exists on WSL 1 only.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::mount_table::{Mount, MountTable};
use crate::facts::Platform;

/// What the platform is told by. Collected by [`Signs::of_table`] and [`SystemSigns::collect`], judged by [`judge`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signs {
    /// Type of the filesystem at `/`; absent when the table has no root.
    pub root_fstype: Option<String>,
    /// Source of the mount at `/`.
    pub root_source: Option<String>,
    /// Options of the mount at `/`.
    pub root_options: Option<String>,
    /// Type of the filesystem at `/dev`; absent when nothing is mounted there.
    pub dev_fstype: Option<String>,
    /// A mount of type `drvfs`, which WSL 1 alone has.
    pub has_drvfs: bool,
    /// A 9p mount that names DrvFs and a Windows path in its options.
    pub has_drvfs_9p: bool,
    /// A share that WSL names: its driver folders, or a drive over virtiofs.
    pub has_wsl_share: bool,
    /// A compressed image or a disc is mounted, as on live and installation media.
    pub has_live_image: bool,
    /// A partition in another system's format is mounted, as people do on machines and not in containers.
    pub has_foreign_partition: bool,
    /// Signs of the running system; absent for a saved table.
    pub system: Option<SystemSigns>,
}

/// Signs outside the mount table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemSigns {
    /// Release of the kernel (`uname -r`).
    pub kernel_release: String,
    /// Windows programs are registered with the kernel (`binfmt_misc/WSLInterop`).
    pub has_wsl_interop: bool,
    /// WSL's init keeps its sockets in `/run/WSL`.
    pub has_run_wsl: bool,
    /// `WSL_DISTRO_NAME` is set.
    pub has_wsl_variable: bool,
    /// `/.dockerenv` exists.
    pub has_dockerenv: bool,
    /// `/run/.containerenv` exists (Podman).
    pub has_containerenv: bool,
    /// The first process is in a control group of a container runtime.
    pub has_container_cgroup: bool,
}

/// The platform and the signs that it was told by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformAnswer {
    /// The platform.
    pub platform: Platform,
    /// The signs for it, in words.
    pub because: Vec<String>,
}

/// Signs that must agree before a running system is taken for a container or WSL.
const NEEDED: i32 = 2;
/// The same for containers in a saved table, where the type of the root is often the only sign there can be.
const NEEDED_CONTAINER_TABLE: i32 = 1;

/// A root disk of WSL 2: a whole SCSI disk without partitions.
static WHOLE_SCSI_DISK: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^/dev/sd[a-z]$").ok());
/// The name that WSL gives to a drive over virtiofs: `drvfs`, `drvfsa`, `drvfsC0`, `drvfsaC0`, or a GUID.
static WSL_VIRTIOFS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(drvfsa?([A-Za-z][0-9]+)?|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$").ok()
});

impl Signs {
    /// Collects the signs that a mount table holds.
    #[must_use]
    pub fn of_table(table: &MountTable) -> Self {
        let root = table.root();
        let any = |wanted: &dyn Fn(&Mount) -> bool| table.mounts.iter().any(wanted);
        let is_from_device = |mount: &Mount| mount.source.starts_with("/dev/");
        let dev = table.mounts.iter().rfind(|mount| mount.mount_point == Path::new("/dev"));
        Self {
            root_fstype: root.map(|mount| mount.fstype.clone()),
            root_source: root.map(|mount| mount.source.clone()),
            root_options: root.map(|mount| mount.options.clone()),
            dev_fstype: dev.map(|mount| mount.fstype.clone()),
            has_drvfs: any(&|mount| mount.fstype == "drvfs"),
            has_drvfs_9p: any(&|mount| {
                mount.fstype == "9p" && mount.option("aname") == Some("drvfs") && mount.option("path").is_some()
            }),
            has_wsl_share: any(&|mount| match mount.fstype.as_str() {
                "9p" => mount.option("aname") == Some("drivers"),
                "virtiofs" => matches(&WSL_VIRTIOFS, &mount.source),
                _ => false,
            }),
            has_live_image: any(&|mount| matches!(mount.fstype.as_str(), "squashfs" | "iso9660" | "erofs")),
            has_foreign_partition: any(&|mount| {
                is_from_device(mount)
                    && matches!(mount.fstype.as_str(), "ntfs3" | "ntfs" | "fuseblk" | "vfat" | "exfat" | "hfsplus")
            }),
            system: None,
        }
    }
}

impl SystemSigns {
    /// Collects the signs of the running system; touches `/proc` and `/run` only.
    #[must_use]
    pub fn collect() -> Self {
        let exists = |path: &str| Path::new(path).symlink_metadata().is_ok();
        let interop = ["WSLInterop", "WSLInterop-late"];
        let cgroup = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
        Self {
            kernel_release: rustix::system::uname().release().to_string_lossy().into_owned(),
            has_wsl_interop: interop.iter().any(|name| exists(&format!("/proc/sys/fs/binfmt_misc/{name}"))),
            has_run_wsl: exists("/run/WSL"),
            has_wsl_variable: std::env::var_os("WSL_DISTRO_NAME").is_some(),
            has_dockerenv: exists("/.dockerenv"),
            has_containerenv: exists("/run/.containerenv"),
            has_container_cgroup: is_container_cgroup(&cgroup),
        }
    }
}

/// Returns whether `/proc/1/cgroup` names a runtime of application containers.
///
/// System containers (LXC, systemd-nspawn) are left out: they keep their disk and are lived in like machines.
fn is_container_cgroup(cgroup: &str) -> bool {
    ["docker", "kubepods", "containerd", "libpod", "crio-"].iter().any(|runtime| cgroup.contains(runtime))
}

/// Tells the platform; pure.
#[must_use]
pub fn judge(signs: &Signs) -> PlatformAnswer {
    if let Some(because) = wsl1(signs) {
        return PlatformAnswer { platform: Platform::Wsl1, because };
    }
    let (container, mut because) = container(signs);
    let needed = if signs.system.is_some() { NEEDED } else { NEEDED_CONTAINER_TABLE };
    if container >= needed {
        return PlatformAnswer { platform: Platform::Container, because };
    }
    let (wsl2, wsl2_because) = wsl2(signs);
    if wsl2 >= NEEDED {
        return PlatformAnswer { platform: Platform::Wsl2, because: wsl2_because };
    }
    because.extend(wsl2_because);
    let because = if because.is_empty() {
        vec!["no sign of WSL or of a container".to_owned()]
    } else {
        because.into_iter().map(|sign| format!("not enough for another answer: {sign}")).collect()
    };
    PlatformAnswer { platform: Platform::Linux, because }
}

fn wsl1(signs: &Signs) -> Option<Vec<String>> {
    let root = signs.root_fstype.as_deref()?;
    if matches!(root, "lxfs" | "wslfs") {
        return Some(vec![format!("the root filesystem is {root}")]);
    }
    // A root of another type (a chroot) on WSL 1 still has the kernel's name and the filesystem type `drvfs`.
    let release = &signs.system.as_ref()?.kernel_release;
    (signs.has_drvfs && release.ends_with("-Microsoft"))
        .then(|| vec![format!("the kernel release is {release}"), "a drive is of type drvfs".to_owned()])
}

fn container(signs: &Signs) -> (i32, Vec<String>) {
    let root = signs.root_fstype.as_deref().unwrap_or_default();
    let mut tally = Tally::default();
    tally.add(matches!(root, "overlay" | "aufs" | "fuse.fuse-overlayfs"), 1, || format!("the root is {root}"));
    tally.add(matches!(root, "virtiofs" | "9p"), 1, || format!("the root is shared into a small machine by {root}"));
    tally.add(signs.dev_fstype.as_deref() == Some("tmpfs"), 1, || "/dev is a tmpfs".to_owned());
    if let Some(system) = &signs.system {
        tally.add(system.has_dockerenv, 1, || "/.dockerenv exists".to_owned());
        tally.add(system.has_containerenv, 1, || "/run/.containerenv exists".to_owned());
        tally.add(system.has_container_cgroup, 1, || "the first process is in a container's cgroup".to_owned());
        // The system distribution of WSL itself has an overlay as its root.
        tally.against(system.has_run_wsl);
    }
    tally.against(signs.dev_fstype.as_deref() == Some("devtmpfs"));
    tally.against(signs.has_live_image);
    tally.against(signs.has_foreign_partition);
    (tally.count, tally.because)
}

fn wsl2(signs: &Signs) -> (i32, Vec<String>) {
    let options = signs.root_options.as_deref().unwrap_or_default();
    let has = |option: &str| options.split(',').any(|own| own == option);
    let is_whole_disk = signs.root_source.as_deref().is_some_and(|source| matches(&WHOLE_SCSI_DISK, source));
    let is_mounted_alike = has("discard") && has("errors=remount-ro");
    let mut tally = Tally::default();
    let drive = || "a 9p mount names DrvFs and a Windows path".to_owned();
    let share = || "a mount has the name of a WSL share".to_owned();
    if let Some(system) = &signs.system {
        let release = &system.kernel_release;
        let is_microsoft = release.to_ascii_lowercase().contains("microsoft");
        tally.add(is_microsoft, 1, || format!("the kernel release is {release}"));
        tally.add(system.has_wsl_interop, 1, || "Windows programs are registered (WSLInterop)".to_owned());
        tally.add(system.has_run_wsl, 1, || "/run/WSL exists".to_owned());
        tally.add(system.has_wsl_variable, 1, || "WSL_DISTRO_NAME is set".to_owned());
        // One sign together: both come from whoever set up the mounts.
        tally.add(signs.has_drvfs_9p, 1, drive);
        tally.add(signs.has_wsl_share && !signs.has_drvfs_9p, 1, share);
        // Rented virtual servers have such roots too, so that the two make one sign here.
        tally.add(is_whole_disk && is_mounted_alike, 1, || "the root disk is mounted as WSL mounts it".to_owned());
    } else {
        // Two: nothing but WSL's own init writes these options.
        tally.add(signs.has_drvfs_9p, NEEDED, drive);
        tally.add(signs.has_wsl_share, 1, share);
        tally.add(is_whole_disk, 1, || "the root is a whole SCSI disk".to_owned());
        tally.add(is_mounted_alike, 1, || "the root has the options that WSL mounts it with".to_owned());
    }
    (tally.count, tally.because)
}

#[derive(Default)]
struct Tally {
    count: i32,
    because: Vec<String>,
}

impl Tally {
    fn add(&mut self, holds: bool, weight: i32, because: impl FnOnce() -> String) {
        if holds {
            self.count += weight;
            self.because.push(because());
        }
    }

    fn against(&mut self, holds: bool) {
        self.count -= i32::from(holds);
    }
}

fn matches(regex: &LazyLock<Option<Regex>>, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(table: &str) -> Signs {
        Signs::of_table(&MountTable::parse(table.as_bytes()))
    }

    fn live(table: &str, system: SystemSigns) -> Platform {
        judge(&Signs { system: Some(system), ..signs(table) }).platform
    }

    fn kernel(release: &str) -> SystemSigns {
        SystemSigns { kernel_release: release.to_owned(), ..SystemSigns::default() }
    }

    const WSL_ROOT: &str = "/dev/sdd / ext4 rw,relatime,discard,errors=remount-ro,data=ordered 0 0\n";
    const DRIVE: &str = "C:\\134 /c 9p rw,aname=drvfs;path=C:\\;uid=0,trans=fd 0 0\n";

    #[test]
    fn a_lone_dockerenv_does_not_make_a_container() {
        let table = "/dev/vda / ext4 rw 0 0\ndevtmpfs /dev devtmpfs rw 0 0\n";
        let system = SystemSigns { has_dockerenv: true, ..kernel("6.1.0") };
        assert_eq!(live(table, system), Platform::Linux);
    }

    #[test]
    fn a_container_on_a_microsoft_kernel_is_a_container() {
        let table = "overlay / overlay rw 0 0\ntmpfs /dev tmpfs rw 0 0\n";
        let system = SystemSigns { has_dockerenv: true, ..kernel("6.6.87.2-microsoft-standard-WSL2") };
        assert_eq!(live(table, system.clone()), Platform::Container);
        assert_eq!(live(&format!("{table}{DRIVE}"), system), Platform::Container);
    }

    #[test]
    fn a_live_system_with_an_overlay_root_is_no_container() {
        let table = "overlay / overlay rw 0 0\ndevtmpfs /dev devtmpfs rw 0 0\n/dev/loop0 /rofs squashfs ro 0 0\n";
        assert_eq!(live(table, kernel("6.1.0")), Platform::Linux);
        assert_eq!(judge(&signs(table)).platform, Platform::Linux);
    }

    #[test]
    fn the_kernel_s_name_alone_does_not_make_wsl() {
        assert_eq!(live("/dev/sda1 / ext4 rw 0 0", kernel("6.6.87.2-microsoft-standard-WSL2")), Platform::Linux);
        let interop = SystemSigns { has_wsl_interop: true, ..kernel("6.6.87.2-microsoft-standard-WSL2") };
        assert_eq!(live("/dev/sda1 / ext4 rw 0 0", interop), Platform::Wsl2);
    }

    #[test]
    fn a_self_built_kernel_does_not_hide_wsl() {
        let system = SystemSigns { has_wsl_interop: true, has_run_wsl: true, ..kernel("6.18.0-mine") };
        assert_eq!(live(WSL_ROOT, system), Platform::Wsl2);
    }

    #[test]
    fn a_drive_s_options_alone_do_not_make_wsl() {
        let table = format!("/dev/vda / ext4 rw 0 0\n{DRIVE}drvfsD1 /d virtiofs rw 0 0\n");
        assert_eq!(live(&table, kernel("6.1.0")), Platform::Linux);
    }

    #[test]
    fn a_rented_server_with_a_whole_disk_root_is_linux() {
        assert_eq!(live(WSL_ROOT, kernel("6.1.0")), Platform::Linux);
    }

    #[test]
    fn wsl1_is_told_by_its_root() {
        for fstype in ["lxfs", "wslfs"] {
            let table = format!("rootfs / {fstype} rw 0 0");
            assert_eq!(judge(&signs(&table)).platform, Platform::Wsl1);
            // Set to WSL 2 in the settings, or a name that says so: the root decides.
            assert_eq!(live(&table, kernel("6.6.87.2-microsoft-standard-WSL2")), Platform::Wsl1);
        }
        let chroot = "none / tmpfs rw 0 0\nC: /c drvfs rw 0 0";
        assert_eq!(live(chroot, kernel("4.4.0-19041-Microsoft")), Platform::Wsl1);
    }

    #[test]
    fn a_system_container_counts_as_linux() {
        assert!(!is_container_cgroup("1:name=systemd:/lxc.payload.penguin/init.scope"));
        assert!(is_container_cgroup("0::/system.slice/docker-0123.scope"));
    }

    #[test]
    fn a_share_named_by_a_guid_needs_a_second_sign() {
        let share = "3f2b7c10-5d6e-4f81-9a0b-1c2d3e4f5a6b /w virtiofs rw 0 0\n";
        assert_eq!(judge(&signs(&format!("/dev/vda1 / ext4 rw 0 0\n{share}"))).platform, Platform::Linux);
        assert_eq!(judge(&signs(&format!("/dev/sdd / ext4 rw 0 0\n{share}"))).platform, Platform::Wsl2);
    }

    #[test]
    fn the_answer_names_its_signs() {
        let answer = judge(&signs(&format!("{WSL_ROOT}{DRIVE}")));
        assert_eq!(answer.platform, Platform::Wsl2);
        assert!(answer.because.iter().any(|sign| sign.contains("DrvFs")), "{answer:?}");
    }
}
