/**
 * Owns server reflection: the descriptors of the bound services and everything they import, so that grpcurl
 * and the like can list and call them.
 */
import { create, type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { loadFileDescriptorSetFromBuffer } from "@grpc/proto-loader";
import { ReflectionService } from "@grpc/reflection";

export function reflectionOf(services: readonly DescService[]): ReflectionService {
  const files = new Map<string, DescFile>();
  for (const service of services) collect(service.file, files);
  const set = create(FileDescriptorSetSchema, { file: [...files.values()].map((file) => file.proto) });
  const definition = loadFileDescriptorSetFromBuffer(Buffer.from(toBinary(FileDescriptorSetSchema, set)));
  return new ReflectionService(definition, { services: services.map((service) => service.typeName) });
}

/** Dependencies come first: a descriptor set is read in order. */
function collect(file: DescFile, into: Map<string, DescFile>): void {
  if (into.has(file.name)) return;
  for (const dependency of file.dependencies) collect(dependency, into);
  into.set(file.name, file);
}
