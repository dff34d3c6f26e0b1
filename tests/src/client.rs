//! A typed client of the API: tonic's generic unary call over tonic-web's client layer and hyper's HTTP/1.1 client.
//!
//! No generated stubs: the method paths stand here once more, so that a renamed service breaks a test.

use anyhow::{Context as _, ensure};
use hyper_util::client::legacy::{Client as Http, connect::HttpConnector};
use prost::Message;
use sealog_proto::associations::IdentifierKind;
use sealog_proto::backend::{
    ClientEnvelope, Cursor, EnvelopeMeta, GetInboxIdsRequest, GetInboxIdsResponse, PublishRequest,
    PublishResponse, QueryNewestRequest, QueryNewestResponse, QueryRequest, QueryResponse, ServerEnvelope,
    SubscribeStaticRequest, SubscribeStaticResponse, TopicQuery, VerifySmartContractWalletSignaturesRequest,
    VerifySmartContractWalletSignaturesResponse, get_inbox_ids_request, query_newest_response,
    verify_smart_contract_wallet_signatures_request as verify_request,
    verify_smart_contract_wallet_signatures_response as verify_response,
};
use sealog_proto::health::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus};
use sealog_proto::{Topic, status::PublishFailure};
use tonic::codegen::http::{Uri, uri::PathAndQuery};
use tonic::{Request, Status, Streaming, body::Body, client::Grpc};
use tonic_prost::ProstCodec;
use tonic_web::{GrpcWebCall, GrpcWebClientService};

use crate::raw::connections;

/// The method path of a publish.
pub const PUBLISH: &str = "/xmtp.backend.v1.PublishService/Publish";
/// The method path of a query.
pub const QUERY: &str = "/xmtp.backend.v1.QueryService/Query";
/// The method path of a query for the newest envelopes.
pub const QUERY_NEWEST: &str = "/xmtp.backend.v1.QueryService/QueryNewest";
/// The method path of a lookup of inboxes.
pub const GET_INBOX_IDS: &str = "/xmtp.backend.v1.IdentityService/GetInboxIds";
/// The method path of the verdicts on wallet signatures.
pub const VERIFY: &str = "/xmtp.backend.v1.IdentityService/VerifySmartContractWalletSignatures";
/// The method path of a static stream.
pub const SUBSCRIBE_STATIC: &str = "/xmtp.backend.v1.SubscriptionService/SubscribeStatic";
/// The method path of the health check.
pub const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// The transport ceiling (API-282), in bytes.
pub const CEILING: usize = 25 << 20;

type Channel = GrpcWebClientService<Http<HttpConnector, GrpcWebCall<Body>>>;

/// One client with its own connections. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Client {
    grpc: Grpc<Channel>,
}

impl Client {
    /// A client of the backend at `url`, for example `http://127.0.0.1:8787`. Connects when it is first used.
    pub fn new(url: &str) -> anyhow::Result<Self> {
        let origin: Uri = url.parse().with_context(|| format!("`{url}` is not a URL"))?;
        let plain = origin.scheme_str() == Some("http") && origin.path() == "/" && origin.query().is_none();
        ensure!(plain, "`{url}` is no address of the form http://HOST:PORT (this client has no TLS)");
        let grpc = Grpc::with_origin(GrpcWebClientService::new(connections()), origin)
            // A little above the ceiling: what is over it must be refused by the server, not by us.
            .max_decoding_message_size(2 * CEILING)
            .max_encoding_message_size(2 * CEILING);
        Ok(Self { grpc })
    }

    /// One unary call.
    pub async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc.clone();
        grpc.ready().await.map_err(|e| Status::unavailable(format!("cannot connect: {e}")))?;
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        grpc.unary(Request::new(request), path, codec).await.map(tonic::Response::into_inner)
    }

    /// Publishes the envelopes as one request.
    pub async fn publish(&self, envelopes: Vec<ClientEnvelope>) -> Result<Vec<EnvelopeMeta>, Status> {
        let response: PublishResponse = self.call(PUBLISH, PublishRequest { envelopes }).await?;
        Ok(response.envelope_metas)
    }

    /// Publishes one envelope.
    ///
    /// # Panics
    /// When the answer holds another number of entries than one (API-221).
    pub async fn publish_one(&self, envelope: ClientEnvelope) -> Result<EnvelopeMeta, Status> {
        let metas = self.publish(vec![envelope]).await?;
        let [meta] = <[EnvelopeMeta; 1]>::try_from(metas).expect("one entry for one envelope");
        Ok(meta)
    }

    /// One page: what lies above each position, `limit` envelopes in total at most (0 = the server's default).
    pub async fn query(&self, positions: &[(Topic, u64)], limit: u32) -> Result<QueryResponse, Status> {
        let queries = positions.iter().map(|(topic, after)| topic_query(topic, *after)).collect();
        self.call(QUERY, QueryRequest { queries, limit }).await
    }

    /// Everything on one topic above `after`, page by page as a client reads it.
    pub async fn read(&self, topic: &Topic, mut after: u64) -> Result<Vec<ServerEnvelope>, Status> {
        let mut all = Vec::new();
        loop {
            let page = self.query(&[(topic.clone(), after)], 0).await?;
            after = page.envelopes.last().map_or(after, id_of);
            all.extend(page.envelopes);
            if !page.continuation.unwrap_or_default().has_more {
                return Ok(all);
            }
        }
    }

    /// The newest envelope of each topic, as the server lists them.
    pub async fn query_newest(
        &self,
        topics: &[Topic],
        include_full_envelope: bool,
    ) -> Result<Vec<query_newest_response::Result>, Status> {
        let request =
            QueryNewestRequest { topics: topics.iter().map(Into::into).collect(), include_full_envelope };
        let response: QueryNewestResponse = self.call(QUERY_NEWEST, request).await?;
        Ok(response.results)
    }

    /// The inboxes that the identifiers belong to, one entry per identifier.
    pub async fn inbox_ids(
        &self,
        identifiers: &[(&str, IdentifierKind)],
    ) -> Result<Vec<Option<String>>, Status> {
        let requests = identifiers
            .iter()
            .map(|(identifier, kind)| get_inbox_ids_request::Request {
                identifier: (*identifier).to_owned(),
                identifier_kind: (*kind).into(),
            })
            .collect();
        let response: GetInboxIdsResponse = self.call(GET_INBOX_IDS, GetInboxIdsRequest { requests }).await?;
        Ok(response.responses.into_iter().map(|response| response.inbox_id).collect())
    }

    /// A verdict on each signature of a contract wallet.
    pub async fn verify(
        &self,
        signatures: Vec<verify_request::Signature>,
    ) -> Result<Vec<verify_response::Response>, Status> {
        let request = VerifySmartContractWalletSignaturesRequest { signatures };
        let response: VerifySmartContractWalletSignaturesResponse = self.call(VERIFY, request).await?;
        Ok(response.responses)
    }

    /// Opens a static stream of topics, each with the position to start behind.
    pub async fn subscribe_static(
        &self,
        positions: &[(Topic, u64)],
    ) -> Result<Streaming<SubscribeStaticResponse>, Status> {
        let mut grpc = self.grpc.clone();
        grpc.ready().await.map_err(|e| Status::unavailable(format!("cannot connect: {e}")))?;
        let topics = positions.iter().map(|(topic, after)| topic_query(topic, *after)).collect();
        let codec = ProstCodec::<SubscribeStaticRequest, SubscribeStaticResponse>::default();
        let path = PathAndQuery::from_static(SUBSCRIBE_STATIC);
        let request = Request::new(SubscribeStaticRequest { topics });
        grpc.server_streaming(request, path, codec).await.map(tonic::Response::into_inner)
    }

    /// The status that the health check reports for a service; the empty name is the whole deployment.
    pub async fn health(&self, service: &str) -> Result<ServingStatus, Status> {
        let request = HealthCheckRequest { service: service.to_owned() };
        let response: HealthCheckResponse = self.call(HEALTH, request).await?;
        Ok(response.status())
    }
}

/// The entry of a query that names a topic and a position.
pub fn topic_query(topic: &Topic, after: u64) -> TopicQuery {
    TopicQuery { topic: Some(topic.into()), cursor: Some(Cursor { sequence_id: after }) }
}

/// The sequence id in metadata; 0, which no envelope has, when it is missing.
pub fn sequence_id(meta: &EnvelopeMeta) -> u64 {
    meta.cursor.map_or(0, |cursor| cursor.sequence_id)
}

/// The sequence id of a stored envelope; 0, which no envelope has, when it is missing.
pub fn id_of(envelope: &ServerEnvelope) -> u64 {
    envelope.meta.as_ref().map_or(0, sequence_id)
}

/// The topic that metadata names.
///
/// # Panics
/// When there is none, or it is not a valid topic: the server broke its contract.
pub fn topic_of(meta: &EnvelopeMeta) -> Topic {
    Topic::from_message(meta.topic.as_ref()).expect("metadata names a valid topic")
}

/// The detail of a failed publish (API-223), when the status carries one.
pub fn failure(status: &Status) -> Option<PublishFailure> {
    PublishFailure::from_details(status.details())
}
