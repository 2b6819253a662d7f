package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// protocol changes with the meaning of any request, result or frame. backend/kubernetes/helper.ts has the same.
const protocol = 1

// request is the first frame of `serve`. Every operation reads its own fields.
type request struct {
	Protocol    int      `json:"protocol"`
	Operation   string   `json:"operation"`
	Argv        []string `json:"argv"`
	Environment []string `json:"environment"`
	Cwd         string   `json:"cwd"`
	User        uint32   `json:"user"`
	HasStdin    bool     `json:"hasStdin"`
	Directory   string   `json:"directory"`
	Names       []string `json:"names"`
	Path        string   `json:"path"`
	Content     string   `json:"content"`
	MaxBytes    int64    `json:"maxBytes"`
	MaxMembers  int      `json:"maxMembers"`
	// Replace whatever stands where a directory or file is to be, instead of refusing.
	IsReplacing bool `json:"isReplacing"`
	// Keep the owners of the archive instead of giving everything to User.
	KeepsOwners bool `json:"keepsOwners"`
	// Give everything to whom the directory belongs.
	IsOwnedLikeDirectory bool     `json:"isOwnedLikeDirectory"`
	Targets              []target `json:"targets"`
}

// result is the last frame of `serve`.
type result struct {
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	Error  string `json:"error,omitempty"`
	// Why a directory cannot be looked at: the caller says it in its own words.
	Missing string `json:"missing,omitempty"`
	// Nothing ran.
	Refused string `json:"refused,omitempty"`
	// Files of the control group, by name.
	Counters   map[string]string `json:"counters,omitempty"`
	Interfaces []string          `json:"interfaces,omitempty"`
	States     []string          `json:"states,omitempty"`
}

func serve() {
	in, out := newFrameReader(os.Stdin), newFrameWriter(os.Stdout)
	first, err := in.next()
	if err != nil || first.kind != kindRequest {
		fail("serve is for the manager: it speaks frames")
	}
	var asked request
	if err := json.Unmarshal(first.bytes, &asked); err != nil {
		fail(err.Error())
	}
	if asked.Protocol != protocol {
		why := fmt.Sprintf("the helper image speaks protocol %d, the manager %d: build it from the same release", protocol, asked.Protocol)
		out.sendJSON(kindResult, result{Error: why})
		os.Exit(0)
	}
	if os.Getuid() == 0 {
		becomeOwn()
	}
	out.sendJSON(kindResult, answer(asked, in, out))
	os.Exit(0)
}

func answer(asked request, in *frameReader, out *frameWriter) result {
	switch asked.Operation {
	case "run":
		return run(asked, in, out)
	case "put":
		return failed(put(asked, dataOf(in)))
	case "remove":
		return failed(removeAll(asked))
	case "write":
		return failed(writeInPlace(asked.Path, asked.Content))
	case "account":
		return failed(addAccount(asked.User))
	case "list":
		return list(asked, out.stream(kindOutput))
	case "pack":
		return pack(asked, out.stream(kindOutput))
	case "kill":
		if asked.HasStdin {
			standBy(in)
		}
		return failed(killEverything())
	case "counters":
		return result{Counters: counters()}
	case "probe":
		return probe(asked.Targets)
	}
	return result{Error: "no such operation: " + asked.Operation}
}

func failed(err error) result {
	if err != nil {
		return result{Error: err.Error()}
	}
	return result{}
}
