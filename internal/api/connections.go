package api

// ConnectionQuery requests a page of the queue pairs.
type ConnectionQuery struct {
	Adapter string `query:"adapter" doc:"Of this adapter only."`
	Search  string `query:"search" maxLength:"200" doc:"Only those with a field that holds this text, in any letter case."`
	Sort    string `query:"sort" enum:"adapter,number,type,state,owner,pid,peer,remote_number,path,mtu,rate,send_posted,recv_posted" default:"number" doc:"The field to sort by."`
	Order   string `query:"order" enum:"up,down" default:"up"`
	Offset  int    `query:"offset" minimum:"0"`
	Limit   int    `query:"limit" minimum:"1" maximum:"10000" default:"100"`
}
