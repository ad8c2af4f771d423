package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// profilesVariable names the directory to which each process writes a CPU profile when it ends.
const profilesVariable = "SOFTVPI_PROFILES"

// profile starts a CPU profile of this process if the environment asks for it. end writes it, and returns
// the process's exit status, normally the given one.
func profile(env tool.Env) (end func(status int) int) {
	dir := os.Getenv(profilesVariable)
	if dir == "" {
		return func(status int) int { return status }
	}
	var b bytes.Buffer // written as a whole: a killed process leaves no partial file
	err := pprof.StartCPUProfile(&b)
	return func(status int) int {
		if err == nil {
			pprof.StopCPUProfile()
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.%d.pprof", env.Name, os.Getpid())), b.Bytes(), 0o644)
		}
		if err != nil {
			env.Errorf("%s: %v", profilesVariable, err)
			status = max(status, tool.Failure)
		}
		return status
	}
}
