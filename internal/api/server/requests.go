package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/softvpi/softvpi/internal/api"
)

// requestLog counts the requests about each adapter.
type requestLog struct {
	mu       sync.Mutex
	adapters map[string]map[string]*api.CallStats // by adapter and route
}

// newRequestLog creates a log for these adapters; requests about others are not counted.
func newRequestLog(list []api.AdapterStatus) *requestLog {
	l := &requestLog{adapters: map[string]map[string]*api.CallStats{}}
	for i := range list {
		l.adapters[list[i].Name] = map[string]*api.CallStats{}
	}
	return l
}

// of returns the statistics of requests about an adapter.
func (l *requestLog) of(adapter string) ([]api.CallStats, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	routes, ok := l.adapters[adapter]
	if !ok {
		var names []string
		for name := range l.adapters {
			names = append(names, strconv.Quote(name))
		}
		slices.Sort(names)
		return nil, api.Wrong("adapter", strconv.Quote(adapter), strings.Join(names, ", "))
	}
	out := make([]api.CallStats, 0, len(routes))
	for _, s := range routes {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b api.CallStats) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// watch counts a request. Routes served by other packages are not counted.
func (l *requestLog) watch(ctx huma.Context, next func(huma.Context)) {
	began := time.Now()
	next(ctx)
	adapter := ctx.Param("name")
	if adapter == "" {
		adapter = ctx.Query("adapter")
	}
	if adapter != "" {
		l.add(adapter, ctx.Operation().Method+" "+ctx.Operation().Path, time.Since(began), ctx.Status() >= http.StatusBadRequest)
	}
}

func (l *requestLog) add(adapter, route string, took time.Duration, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	routes, ok := l.adapters[adapter]
	if !ok {
		return
	}
	s := routes[route]
	if s == nil {
		s = &api.CallStats{Name: route}
		routes[route] = s
	}
	s.Count++
	s.Total += took
	s.Longest = max(s.Longest, took)
	if failed {
		s.Failed++
	}
}
