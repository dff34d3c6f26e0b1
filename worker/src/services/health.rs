//! `grpc.health.v1.Health/Check`: whether this worker answers with settings that are those of the deployment.
//!
//! The settings were checked before it is called. Until the isolate knows that the stored numbers of partitions are those that
//! are set, it asks the sequencer (OPS-005); from then on it touches no object, and does not say how the objects are (OPS-006).

use bytes::Bytes;
use prost::Message;
use sealog_proto::{
    health::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus},
    status::Code,
};

use crate::{
    deployment::Deployment,
    error::Status,
    transport::{CEILING_BYTES, answer::Answer},
};

/// All services report one common status (OPS-004).
const PREFIX: &str = "xmtp.backend.v1.";
const SERVICES: [&str; 7] = [
    "PublishService",
    "QueryService",
    "SubscriptionService",
    "IdentityService",
    "ConfigurationService",
    "NotificationService",
    "AttachmentService",
];

pub(super) async fn serve(deployment: &Deployment, message: Bytes) -> Result<Answer, Status> {
    check_name(message)?;
    deployment.store.check_shape().await?;
    Answer::success(&HealthCheckResponse { status: ServingStatus::Serving.into() }, CEILING_BYTES)
}

/// Fails when the request asks about a service that is not ours.
fn check_name(message: Bytes) -> Result<(), Status> {
    let service = HealthCheckRequest::decode(message)?.service;
    let known =
        service.is_empty() || service.strip_prefix(PREFIX).is_some_and(|service| SERVICES.contains(&service));
    if known { Ok(()) } else { Err(Status::new(Code::NotFound, "no service has this name")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(service: &str) -> Result<(), Code> {
        let request = HealthCheckRequest { service: service.to_owned() };
        check_name(request.encode_to_vec().into()).map_err(|status| status.code)
    }

    #[test]
    fn ops_004_the_whole_and_every_service_of_ours_can_be_asked_about() {
        assert_eq!(check(""), Ok(()));
        for service in SERVICES {
            assert_eq!(check(&format!("{PREFIX}{service}")), Ok(()));
        }
    }

    #[test]
    fn an_unknown_service_is_not_found() {
        for service in ["QueryService", "xmtp.backend.v1.", "xmtp.backend.v1.queryservice", "other"] {
            assert_eq!(check(service), Err(Code::NotFound), "{service}");
        }
    }
}
