package registry

// What is said of virtual subnets is kept as lines of words. The manuals have no key for it: Windows forgets it with each start
// (WinOF-2 1.21, 3.3.2.3.1), and Hyper-V's management keeps it elsewhere.
const valueEntries = "Entries"

var overlayKey = Path{ControlSet + `\Services\SoftVPI\Overlay`}

// Overlay returns what is kept of virtual subnets, a line for each entry.
func (r *Registry) Overlay() []string {
	v, _ := r.Get(overlayKey, valueEntries)
	lines, _ := v.List()
	return lines
}

// KeepOverlay returns the change that keeps these entries, in place of those that were kept.
func KeepOverlay(lines []string) Change {
	if len(lines) == 0 {
		return Change{Kind: DeleteKey, Key: overlayKey, Lenient: true}
	}
	return Change{Kind: SetValue, Key: overlayKey, Value: Strings(valueEntries, lines)}
}
