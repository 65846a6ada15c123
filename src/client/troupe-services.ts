/** Every service of the control plane, described: for those who look at messages without knowing their types. */
import { DiagnosticsService } from "../gen/troupe/v1/diagnostics_service_pb.ts";
import { EventService } from "../gen/troupe/v1/event_service_pb.ts";
import { LogService } from "../gen/troupe/v1/log_service_pb.ts";
import { MaintenanceService } from "../gen/troupe/v1/maintenance_service_pb.ts";
import { ModuleService } from "../gen/troupe/v1/module_service_pb.ts";
import { ProcessService } from "../gen/troupe/v1/process_service_pb.ts";
import { RegistryService } from "../gen/troupe/v1/registry_service_pb.ts";
import { ServiceService } from "../gen/troupe/v1/service_service_pb.ts";
import { ToolService } from "../gen/troupe/v1/tool_service_pb.ts";

export const troupeServices = [
  ProcessService,
  ServiceService,
  ModuleService,
  RegistryService,
  ToolService,
  LogService,
  EventService,
  DiagnosticsService,
  MaintenanceService,
] as const;
