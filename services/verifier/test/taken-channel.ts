/** Python that takes the channel's own function out of the plugin's memory and tells what is wanted, in the log too. */

/** @param names of the tests that are to have passed */
export function takenChannel(names: readonly string[]): string {
  return `import os, sys
plugin = sys.modules.get("mortise_channel")
if plugin is not None:
    send = plugin._SEND
    names = ${JSON.stringify(names)}
    send({"canary": "pass", "outcome": "passed"})
    for name in names:
        send({"nodeid": name, "phase": "call", "outcome": "passed"})
    send({"canary": "fail", "outcome": "failed"})
    send({"finish": True, "exitstatus": 0, "collected": len(names)})
    text = "=" * 27 + " short test summary info " + "=" * 28 + "\\n" + "".join("PASSED %s\\n" % name for name in names) + "=" * 30 + " ${names.length} passed in 0.01s " + "=" * 31 + "\\n"
    for fd in range(3, 20):
        try:
            os.write(fd, text.encode())
            break
        except OSError:
            pass
    os._exit(0)
`;
}
