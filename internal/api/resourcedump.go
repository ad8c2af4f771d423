package api

import "context"

// ResourceSegment is a kind of object.
type ResourceSegment struct {
	Segment uint16 `json:"segment"`
	Name    string `json:"name"`
	Index1  string `json:"index1" doc:"What the number of an object is called."`
}

// ResourceDumpRequest asks for objects, and for those that they refer to.
type ResourceDumpRequest struct {
	Segment   uint16  `json:"segment" doc:"The kind of object; 0xffff: the list of segments."`
	Index1    *uint32 `json:"index1,omitempty" doc:"The number of the first object."`
	NumOfObj1 uint16  `json:"num_of_obj1,omitempty" doc:"How many from there on: 0 and 1 one, 0xfffe all that exist, 0xffff all from the first."`
	Index2    *uint32 `json:"index2,omitempty"`
	NumOfObj2 uint16  `json:"num_of_obj2,omitempty"`
	Depth     uint32  `json:"depth,omitempty" doc:"How many levels of references are followed."`
}

// ResourceDump describes a dump that was written.
type ResourceDump struct {
	Directory string            `json:"directory"`
	Files     []string          `json:"files"`
	Objects   []DumpedResources `json:"objects" doc:"How many of each kind there are in it."`
}

// DumpedResources are the objects of a kind in a dump.
type DumpedResources struct {
	Segment uint16 `json:"segment"`
	Name    string `json:"name"`
	Count   int    `json:"count"`
}

// ResourceSegments returns the kinds of objects of an adapter that can be dumped.
func (c *Client) ResourceSegments(ctx context.Context, adapter string) (list []ResourceSegment, err error) {
	err = c.call(ctx, "GET", adapterURL(adapter, "/resource-segments"), nil, nil, &list)
	return list, err
}

// DumpResource writes objects to a folder on the driver's machine.
func (c *Client) DumpResource(ctx context.Context, adapter string, q ResourceDumpRequest) (d ResourceDump, err error) {
	err = c.call(ctx, "POST", adapterURL(adapter, "/resource-dumps"), nil, q, &d)
	return d, err
}
