/**
 * Owns the system-call policy of runc sandboxes: everything is allowed except what reaches kernel parts an
 * agent has no use for. Capabilities are dropped besides; this is the second line.
 * Does not apply to the docker backend, which brings Docker's own profile.
 */

const EPERM = 1;
const ENOSYS = 38;
const CLONE_NEWUSER = 0x1000_0000;
/** Highest socket family allowed: AF_NETLINK. Above are packet, vsock, alg, xdp: ways around the namespace. */
const AF_NETLINK = 16;

const DENIED = [
  ..."mount umount umount2 pivot_root move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr".split(
    " ",
  ),
  ..."unshare setns chroot ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd".split(" "),
  ..."bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register".split(" "),
  ..."keyctl add_key request_key kexec_load kexec_file_load init_module finit_module delete_module".split(
    " ",
  ),
  ..."open_by_handle_at name_to_handle_at reboot swapon swapoff quotactl acct syslog lookup_dcookie".split(
    " ",
  ),
  ..."settimeofday clock_settime clock_adjtime adjtimex iopl ioperm vhangup nfsservctl personality".split(
    " ",
  ),
];

const ARCHITECTURE: Partial<Record<NodeJS.Architecture, string>> = {
  x64: "SCMP_ARCH_X86_64",
  arm64: "SCMP_ARCH_AARCH64",
};

/** The `linux.seccomp` object of an OCI runtime configuration. Other architectures' calls kill the caller. */
export function seccompProfile(architecture: NodeJS.Architecture): object {
  return {
    defaultAction: "SCMP_ACT_ALLOW",
    architectures: [ARCHITECTURE[architecture]],
    syscalls: [
      { names: DENIED, action: "SCMP_ACT_ERRNO", errnoRet: EPERM },
      // Its flags lie in memory where a filter cannot look; C libraries fall back to clone.
      { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
      {
        names: ["clone"],
        action: "SCMP_ACT_ERRNO",
        errnoRet: EPERM,
        args: [{ index: 0, value: CLONE_NEWUSER, valueTwo: CLONE_NEWUSER, op: "SCMP_CMP_MASKED_EQ" }],
      },
      {
        names: ["socket"],
        action: "SCMP_ACT_ERRNO",
        errnoRet: EPERM,
        args: [{ index: 0, value: AF_NETLINK, op: "SCMP_CMP_GT" }],
      },
    ],
  };
}

export function isArchitectureSupported(architecture: NodeJS.Architecture): boolean {
  return ARCHITECTURE[architecture] !== undefined;
}
