//! `grpc.health.v1.Health/Check`. Touches no object: it says whether this worker answers.

use bytes::Bytes;
use prost::Message;
use sealog_proto::{
    health::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus},
    status::Code,
};

use crate::{
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

pub(super) fn serve(message: Bytes) -> Result<Answer, Status> {
    let service = HealthCheckRequest::decode(message)?.service;
    let known =
        service.is_empty() || service.strip_prefix(PREFIX).is_some_and(|service| SERVICES.contains(&service));
    if !known {
        return Err(Status::new(Code::NotFound, "no service has this name"));
    }
    Answer::success(&HealthCheckResponse { status: ServingStatus::Serving.into() }, CEILING_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(service: &str) -> Result<Answer, Code> {
        let request = HealthCheckRequest { service: service.to_owned() };
        serve(request.encode_to_vec().into()).map_err(|status| status.code)
    }

    #[test]
    fn ops_004_every_service_of_ours_reports_the_common_status() {
        let common = check("").unwrap();
        for service in SERVICES {
            assert_eq!(check(&format!("{PREFIX}{service}")), Ok(common.clone()));
        }
    }

    #[test]
    fn an_unknown_service_is_not_found() {
        for service in ["QueryService", "xmtp.backend.v1.", "xmtp.backend.v1.queryservice", "other"] {
            assert_eq!(check(service), Err(Code::NotFound), "{service}");
        }
    }
}
