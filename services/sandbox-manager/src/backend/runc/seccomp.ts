/**
 * Owns the system-call policy of runc sandboxes: everything is allowed except what reaches kernel parts an
 * agent has no use for. Capabilities are dropped besides; this is the second line.
 * The docker backend gives its containers the same.
 */

const EPERM = 1;
const ENOSYS = 38;
const CLONE_NEWUSER = 0x1000_0000;
/** Highest socket family allowed. Above are packet, vsock, alg, xdp: ways around the namespace. */
const AF_NETLINK = 16;
/** Unix, IPv4, IPv6. The others up to AF_NETLINK are protocols of their own whose modules the kernel would load. */
const ALLOWED_BELOW_NETLINK = [1, 2, 10];
/** Of netlink only this is needed, to list addresses; others tell of the host, such as its device events. */
const NETLINK_ROUTE = 0;

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
      refusedSocket([{ index: 0, value: AF_NETLINK, op: "SCMP_CMP_GT" }]),
      ...otherFamilies().map((family) => refusedSocket([{ index: 0, value: family, op: "SCMP_CMP_EQ" }])),
      refusedSocket([
        { index: 0, value: AF_NETLINK, op: "SCMP_CMP_EQ" },
        { index: 2, value: NETLINK_ROUTE, op: "SCMP_CMP_NE" },
      ]),
    ],
  };
}

function otherFamilies(): number[] {
  const families = Array.from({ length: AF_NETLINK }, (_, family) => family);
  return families.filter((family) => !ALLOWED_BELOW_NETLINK.includes(family));
}

function refusedSocket(args: readonly object[]): object {
  return { names: ["socket"], action: "SCMP_ACT_ERRNO", errnoRet: EPERM, args };
}

export function isArchitectureSupported(architecture: NodeJS.Architecture): boolean {
  return ARCHITECTURE[architecture] !== undefined;
}
