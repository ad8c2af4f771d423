package web

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/retry"
)

// chromium finds a browser of the Chromium family.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium in the PATH: the device manager is not clicked through")
	return ""
}

// tab is a page in a browser, and records what goes wrong in it.
type tab struct {
	t         *testing.T
	ctx       context.Context
	downloads string // directory
	clicks    int    // so far

	mu       sync.Mutex
	host     string // the only host that may be asked
	wrong    []string
	refusals map[string]int // error answers that the test expects, by path
	asked    map[string]int // number of requests, by path
	names    map[string]string
	ended    map[string]string // by the name that the page gave a download: the name of the finished file
}

// open starts a browser with a profile of its own.
func open(t *testing.T, path string) *tab {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck, chromedp.WSURLReadTimeout(await.Limit),
		chromedp.WindowSize(1280, 1000), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
	}
	b := &tab{t: t, ctx: started(t, options), downloads: t.TempDir(), refusals: map[string]int{}, asked: map[string]int{},
		names: map[string]string{}, ended: map[string]string{}}
	chromedp.ListenTarget(b.ctx, b.heard)
	chromedp.ListenBrowser(b.ctx, b.heard)
	b.do(network.Enable(), cdplog.Enable(),
		browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllowAndName).WithDownloadPath(b.downloads).WithEventsEnabled(true))
	return b
}

// starts is how often Chromium is started before its crashes count as a failure.
const starts = 5

// started starts a browser that ends with the test. Rarely Chromium crashes before it listens for chromedp, which the messages of the
// handler of its crashes tell: no page of ours has been opened then.
func started(t *testing.T, options []chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	for try := 1; ; try++ {
		allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
		// chromedp would complain of protocol events that are newer than itself.
		ctx, stop := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
		err := chromedp.Run(ctx)
		if err == nil {
			t.Cleanup(func() {
				if err := chromedp.Cancel(ctx); err != nil {
					t.Errorf("end the browser: %v", err)
				}
				stop()
				end()
			})
			return ctx
		}
		stop()
		end()
		if try == starts || !strings.Contains(err.Error(), "chrome failed to start") || !strings.Contains(err.Error(), "crashpad") {
			t.Fatal(err)
		}
		retry.Count(t, "chromium", "it crashed before it listened")
	}
}

// heard records what the browser reports. Violations of the Content-Security-Policy are reported as log entries.
func (b *tab) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.wrong = append(b.wrong, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert || e.Type == runtime.APITypeWarning {
			text := "console: " + e.Type.String()
			for _, x := range e.Args {
				text += " " + string(x.Value) + x.Description
			}
			b.wrong = append(b.wrong, text)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError || e.Entry.Level == cdplog.LevelWarning {
			b.entry(e.Entry)
		}
	case *network.EventRequestWillBeSent:
		at, err := url.Parse(e.Request.URL)
		if err != nil || at.Scheme != "blob" && at.Scheme != "data" && at.Host != b.host {
			b.wrong = append(b.wrong, "asks elsewhere: "+e.Request.URL)
			return
		}
		b.asked[at.Path]++
	case *browser.EventDownloadWillBegin:
		b.names[e.GUID] = e.SuggestedFilename
	case *browser.EventDownloadProgress:
		switch e.State {
		case browser.DownloadProgressStateCompleted:
			b.ended[b.names[e.GUID]] = filepath.Join(b.downloads, e.GUID)
		case browser.DownloadProgressStateCanceled:
			b.wrong = append(b.wrong, "download was cancelled: "+b.names[e.GUID])
		}
	}
}

func (b *tab) entry(e *cdplog.Entry) {
	at, err := url.Parse(e.URL)
	if err == nil && e.Source == cdplog.SourceNetwork && b.refusals[at.Path] > 0 && (strings.Contains(e.Text, "422") ||
		strings.Contains(e.Text, "404")) {
		b.refusals[at.Path]--
		return
	}
	b.wrong = append(b.wrong, fmt.Sprintf("log: %s: %s (%s)", e.Source, e.Text, e.URL))
}

// refused announces that the next answer at a path is an error.
func (b *tab) refused(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusals[path]++
}

// requests returns how often a path was requested.
func (b *tab) requests(path string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[path]
}

// faults returns what has gone wrong so far, and forgets it.
func (b *tab) faults() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, b.wrong = b.wrong, nil
	return all
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// try runs actions within a time limit: an element may be replaced while they look for it.
func (b *tab) try(within time.Duration, actions ...chromedp.Action) error {
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}

// follow opens an address of the pages.
func (b *tab) follow(link string) {
	b.t.Helper()
	at, err := url.Parse(link)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	b.host = at.Host
	b.mu.Unlock()
	b.do(chromedp.Navigate(link))
}

// holds waits until an expression is true in the page.
func (b *tab) holds(expression string) {
	b.t.Helper()
	var err error
	for end := time.Now().Add(await.Limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var ok bool
		if err = b.try(2*time.Second, chromedp.Evaluate(expression, &ok)); err == nil && ok {
			return
		}
	}
	var text string
	_ = b.try(2*time.Second, chromedp.Evaluate("location.href + '\\n' + document.body.innerText", &text))
	b.t.Fatalf("never true: %s (%v)\n%s\nwrong: %q", expression, err, text, b.faults())
}

// shows waits until an element contains a text.
func (b *tab) shows(selector, text string) {
	b.t.Helper()
	b.holds(fmt.Sprintf("[...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))", strconv.Quote(selector),
		strconv.Quote(text)))
}

// click clicks on an element with the mouse, until the element has got a click: what is clicked moves while a page is laid out or a part
// of it is renewed, and a click that came too late for a time limit may have hit.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.clicks++
	quoted, hit := strconv.Quote(selector), fmt.Sprintf("hit %d", b.clicks)
	// What was hit is known to the page that a click leads to.
	watch := fmt.Sprintf(`(() => {
		if (document.readyState !== "complete" || document.querySelector(%s) === null) return false;
		if (window.watched !== %q) document.addEventListener("click", (e) => {
			if (e.target.closest(%s)) sessionStorage.setItem(%q, "");
		}, { capture: true });
		window.watched = %q;
		return true;
	})()`, quoted, hit, quoted, hit, hit)
	var err error
	for end := time.Now().Add(await.Limit); time.Now().Before(end); {
		done := false
		if b.try(2*time.Second, chromedp.Evaluate(fmt.Sprintf("sessionStorage.getItem(%q) !== null", hit), &done)) != nil {
			continue // between two pages
		}
		if done {
			return
		}
		b.holds(watch)
		var nodes []*cdp.Node
		if err = b.try(3*time.Second, chromedp.Nodes(selector, &nodes, chromedp.ByQuery, chromedp.NodeVisible)); err == nil {
			// One that is given up while it is on its way would come on top of the next: on the page that that leads to.
			err = b.try(await.Limit/2, chromedp.MouseClickNode(nodes[0]))
		}
	}
	b.t.Fatalf("click on %s: %v; wrong: %q", selector, err, b.faults())
}

// write replaces the text of a field by typing, until the field has it: what is typed while a page is being loaded can be lost.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	quoted := strconv.Quote(selector)
	for end := time.Now().Add(await.Limit); time.Now().Before(end); {
		b.holds(fmt.Sprintf(`(() => {
			const e = document.querySelector(%s);
			e?.select();
			return e !== null && document.readyState === "complete";
		})()`, quoted))
		b.do(chromedp.SendKeys(selector, text, chromedp.ByQuery))
		written := ""
		b.do(chromedp.Evaluate(fmt.Sprintf("document.querySelector(%s)?.value", quoted), &written))
		if written == text {
			return
		}
	}
	b.t.Fatalf("%s does not take %q; wrong: %q", selector, text, b.faults())
}

// choose selects an option by its text.
func (b *tab) choose(selector, text string) {
	b.t.Helper()
	b.holds(fmt.Sprintf(`(() => {
		const s = document.querySelector(%s), o = [...(s?.options ?? [])].find((o) => o.text === %s);
		if (!o) return false;
		s.value = o.value;
		s.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})()`, strconv.Quote(selector), strconv.Quote(text)))
}

// texts returns the texts of all elements that a selector finds.
func (b *tab) texts(selector string) (all []string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf("[...document.querySelectorAll(%s)].map((e) => e.textContent.trim())", strconv.Quote(selector)),
		&all))
	return all
}

// downloaded waits for the end of a download whose name ends with ending, and reads the file.
func (b *tab) downloaded(ending string) []byte {
	b.t.Helper()
	for end := time.Now().Add(await.Limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		b.mu.Lock()
		file := ""
		for name, at := range b.ended {
			if strings.HasSuffix(name, ending) {
				file = at
				delete(b.ended, name)
			}
		}
		b.mu.Unlock()
		if file != "" {
			text, err := os.ReadFile(file)
			if err != nil {
				b.t.Fatal(err)
			}
			return text
		}
	}
	b.t.Fatalf("no download ends with %q; wrong: %q", ending, b.faults())
	return nil
}
