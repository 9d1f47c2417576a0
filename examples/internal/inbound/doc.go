// Package inbound holds what the ingestion servers share after parsing: rules for keys, datasets that are created on
// demand, points made of tags and fields, batches that merge points of one series and time, and the outcome of each
// point.
//
// An *Error says that a record can never be stored as it is. After any other error it may be sent again.
package inbound
