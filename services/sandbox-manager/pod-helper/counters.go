package main

import "os"

// As the container sees its own control group: one hierarchy, or one for each controller.
var counterFiles = map[string]string{
	"cpu.stat":              "/sys/fs/cgroup/cpu.stat",
	"memory.peak":           "/sys/fs/cgroup/memory.peak",
	"memory.events":         "/sys/fs/cgroup/memory.events",
	"pids.events":           "/sys/fs/cgroup/pids.events",
	"io.pressure":           "/sys/fs/cgroup/io.pressure",
	"snmp":                  "/proc/self/net/snmp",
	"snmp6":                 "/proc/self/net/snmp6",
	"v1/cpuacct.usage":      "/sys/fs/cgroup/cpuacct/cpuacct.usage",
	"v1/cpu.stat":           "/sys/fs/cgroup/cpu/cpu.stat",
	"v1/memory.max":         "/sys/fs/cgroup/memory/memory.max_usage_in_bytes",
	"v1/memory.oom_control": "/sys/fs/cgroup/memory/memory.oom_control",
	"v1/pids.events":        "/sys/fs/cgroup/pids/pids.events",
}

// counters are the contents of what is there; what is not is absent.
func counters() map[string]string {
	found := map[string]string{}
	for name, file := range counterFiles {
		if bytes, err := os.ReadFile(file); err == nil {
			found[name] = string(bytes)
		}
	}
	return found
}
