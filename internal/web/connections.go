package web

import (
	"net/url"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
)

// connectionsPage is the number of rows on a page of connections.
const connectionsPage = 100

// connectionsView is what the page of connections shows.
type connectionsView struct {
	Query    api.ConnectionQuery
	Columns  []column
	Page     api.Connections
	From, To int
	// Links to the pages before and after this one, and at both ends; empty: this page is at that end.
	First, Newer, Next, Last string
	Number, Of               int // number of this page, and of pages in total
}

// column is a column of a table that can be sorted.
type column struct {
	Name, Title string
	Sort        string // "ascending" or "descending" if the table is sorted by it
	Number      bool
	Link        string // sorts by it
}

// connectionColumns are the titles, by the names by which the management interface sorts.
var connectionColumns = []struct {
	name, title string
	number      bool
}{
	{"number", "QP", true}, {"adapter", "Adapter", false}, {"type", "Type", false}, {"state", "State", false}, {"owner", "Program", false},
	{"pid", "Process", true},
	{"peer", "Peer", false}, {"remote_number", "Remote QP", true}, {"path", "Path", false}, {"mtu", "MTU", true},
	{"rate", "Rate", true},
	{"send_posted", "Sends", true}, {"recv_posted", "Receives", true},
}

// connections shows a page of the queue pairs with their owners.
func (s *Server) connections(q *request) error {
	v, err := s.view(q, "Connections", "connections")
	if err != nil {
		return err
	}
	in := q.r.URL.Query()
	ask := api.ConnectionQuery{Adapter: in.Get("adapter"), Search: in.Get("search"), Sort: in.Get("sort"), Order: in.Get("order"),
		Limit: connectionsPage}
	if text := in.Get("offset"); text != "" {
		if ask.Offset, err = strconv.Atoi(text); err != nil || ask.Offset < 0 {
			return &api.FieldError{Field: "offset", Value: strconv.Quote(text), Allowed: "0 and more"}
		}
	}
	page, err := s.client.Connections(q.r.Context(), ask)
	if err != nil {
		return err
	}
	d := connectionsView{Query: ask, Page: page, From: ask.Offset + 1, To: ask.Offset + len(page.Items)}
	last := max(0, (page.Total-1)/connectionsPage) * connectionsPage
	d.Number, d.Of = ask.Offset/connectionsPage+1, last/connectionsPage+1
	if ask.Offset > 0 {
		d.First = connectionsURL(ask, 0)
		d.Newer = connectionsURL(ask, max(0, ask.Offset-connectionsPage))
	}
	if d.To < page.Total {
		d.Next = connectionsURL(ask, ask.Offset+connectionsPage)
		d.Last = connectionsURL(ask, last)
	}
	for _, c := range connectionColumns {
		by := ask
		by.Sort, by.Order = c.name, ""
		x := column{Name: c.name, Title: c.title, Number: c.number}
		if ask.Sort == c.name || ask.Sort == "" && c.name == "number" {
			x.Sort = "ascending"
			if ask.Order == "down" {
				x.Sort = "descending"
			} else {
				by.Order = "down"
			}
		}
		x.Link = connectionsURL(by, 0)
		d.Columns = append(d.Columns, x)
	}
	v.Data = d
	return s.show(q, "connections", v)
}

func connectionsURL(q api.ConnectionQuery, offset int) string {
	v := url.Values{}
	for name, value := range map[string]string{"adapter": q.Adapter, "search": q.Search, "sort": q.Sort, "order": q.Order} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if offset > 0 {
		v.Set("offset", strconv.Itoa(offset))
	}
	if len(v) == 0 {
		return Prefix + "connections"
	}
	return Prefix + "connections?" + v.Encode()
}
