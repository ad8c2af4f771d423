// Package api is the driver's management interface as those who ask see it: the documents of requests and answers, how people read
// them, and Client, which sends the requests. They are HTTP with JSON, described by an OpenAPI document that is generated from the types
// here (GET /openapi.json). Package server is the other end.
package api
