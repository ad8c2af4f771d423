package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/softvpi/softvpi/internal/tools/tool"
)

// profilesVariable names the directory that processes write profiles of their processor time into, one each, as they end.
const profilesVariable = "SOFTVPI_PROFILES"

// profile notes from now on what takes this process's processor time, where the environment asks for it. end writes that,
// and returns the process's exit status in place of the one that it is given.
func profile(env tool.Env) (end func(status int) int) {
	dir := os.Getenv(profilesVariable)
	if dir == "" {
		return func(status int) int { return status }
	}
	var b bytes.Buffer // written as a whole: who is killed leaves no half of one
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
