module mortise/pod-helper

go 1.25
