package api

import (
	"context"
	"net/url"
	"strconv"
)

// Connection is a queue pair with its adapter.
type Connection struct {
	Adapter string `json:"adapter"`
	QPStatus
}

// Connections is a page of the queue pairs.
type Connections struct {
	Total int          `json:"total" doc:"How many match, on all pages."`
	Items []Connection `json:"items"`
}

// ConnectionQuery requests a page of the queue pairs.
type ConnectionQuery struct {
	Adapter string `query:"adapter" doc:"Of this adapter only."`
	Search  string `query:"search" maxLength:"200" doc:"Only those with a field that holds this text, in any letter case."`
	Sort    string `query:"sort" enum:"adapter,number,type,state,owner,pid,peer,remote_number,path,mtu,rate,send_posted,recv_posted" default:"number" doc:"The field to sort by."`
	Order   string `query:"order" enum:"up,down" default:"up"`
	Offset  int    `query:"offset" minimum:"0"`
	Limit   int    `query:"limit" minimum:"1" maximum:"10000" default:"100"`
}

// Connections returns a page of the queue pairs. Zero fields select the defaults.
func (c *Client) Connections(ctx context.Context, q ConnectionQuery) (Connections, error) {
	v := url.Values{}
	for name, value := range map[string]string{"adapter": q.Adapter, "search": q.Search, "sort": q.Sort, "order": q.Order} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, n := range map[string]int{"offset": q.Offset, "limit": q.Limit} {
		if n != 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	var page Connections
	err := c.call(ctx, "GET", "/connections", v, nil, &page)
	return page, err
}
